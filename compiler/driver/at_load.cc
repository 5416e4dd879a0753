// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/driver/at_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

class LinkedWork {
 public:
  explicit LinkedWork(Graph* graph) : graph_(*graph) {}

  void Run() {
    // Each node in front of its first reader, so that few results live at once.
    for (Node* node : std::exchange(graph_.init.nodes, {})) {
      for (const Value* input : node->inputs) Make(input);
      const bool follows = std::any_of(node->inputs.begin(), node->inputs.end(), [](const Value* input) {
        return input != nullptr &&
               (input->at_load || (input->producer != nullptr && input->producer->at_load));
      });
      node->at_load = node->at_load || follows;
      graph_.init.nodes.push_back(node);
    }
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (const Node* node : block->nodes) {
        for (const Value* input : node->inputs) Make(input);
        for (const Node::Extent& extent : node->extents) Make(extent.shape);
      }
      for (const Value* result : block->results) Make(result);
    });
    // A weight that several nodes read has been reshaped, cast and packed for each of them.
    if (made_) ShareConstants(&graph_);
  }

 private:
  // Appends the node that makes the value, behind those that make what it reads.
  void Make(const Value* value) {
    if (value == nullptr || !value->at_load || value->folded == nullptr) return;
    Node* node = value->folded;
    for (const Value* input : node->inputs) Make(input);
    Value* output = node->outputs[0];
    output->constant.reset();
    output->at_load = false;
    output->producer = node;
    node->at_load = true;
    graph_.init.nodes.push_back(node);
    made_ = true;
  }

  Graph& graph_;
  bool made_ = false;
};

bool IsWeights(const HostTensor& tensor) {
  const bool floats = tensor.dtype.code == kFloat || tensor.dtype.code == kBFloat;
  return floats && tensor.dtype.bits >= 16 && tensor.bytes.view.size() > ElementBytes(tensor.dtype);
}

}  // namespace

bool ParameterChoice::Has(const std::string& name, const HostTensor& tensor) {
  known_.insert(name);
  if (kept_.contains(name)) return false;
  return options_.parameters.contains(name) || (options_.all_parameters && IsWeights(tensor));
}

bool ParameterChoice::Keep(const Graph& graph) {
  const std::size_t before = kept_.size();
  for (const Graph::Parameter& parameter : graph.parameters) {
    if (parameter.value->elements_wanted) kept_.insert(parameter.value->name);
  }
  return kept_.size() > before;
}

Status ParameterChoice::Check() const {
  for (const std::string& name : options_.parameters) {
    if (kept_.contains(name)) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("constant '{}' cannot be a parameter: the program depends on its elements, as "
                              "on those of a shape, an axis or a scale of quantization; leave it out of the "
                              "parameters",
                              name));
    }
    if (known_.contains(name)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    return Fail(StatusCode::kInvalidArgument, fmt::format("the model has no constant '{}'{}", name,
                                                          DidYouMean(name, {known.data(), known.size()})));
  }
  return {};
}

void ComputeAtLinking(Graph* graph) { LinkedWork(graph).Run(); }

ParameterSet ParametersOf(const Graph& graph, const Module& module) {
  std::set<std::string> names;
  for (const Constant& constant : module.constants) {
    if (constant.kind == ConstantKind::kParameter) names.insert(constant.name);
  }
  ParameterSet set;
  for (const Graph::Parameter& parameter : graph.parameters) {
    if (!names.contains(parameter.value->name)) continue;
    const auto owner = std::make_shared<const HostTensor>(parameter.tensor);
    const TensorView view(const_cast<std::byte*>(owner->bytes.view.data()), owner->dtype,
                          {owner->shape.data(), owner->shape.size()});
    Result<Tensor> tensor = Tensor::Wrap(view, owner);
    if (tensor) set.Set(parameter.value->name, *std::move(tensor));
  }
  return set;
}

}  // namespace rewire::compiler

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
  explicit LinkedWork(Graph* graph)
      : graph_(*graph), left_(graph->init.nodes.begin(), graph->init.nodes.end()) {}

  void Run() {
    // A node stands in front of its first reader, so that few results live at once.
    for (Node* node : std::exchange(graph_.init.nodes, {})) {
      for (const Value* input : node->inputs) Make(input);
      Append(node);
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
  // Appends the nodes that make the value and all that they read, as far as they are left. A model may have
  // chains of any length, so this does not call itself.
  void Make(const Value* value) {
    std::vector<const Value*> open = {value};
    while (!open.empty()) {
      Node* node = NodeLeft(open.back());
      const std::size_t before = open.size();
      for (std::size_t i = 0; node != nullptr && i < node->inputs.size(); ++i) {
        if (NodeLeft(node->inputs[i]) != nullptr) open.push_back(node->inputs[i]);
      }
      if (open.size() > before) continue;
      if (node != nullptr) Append(node);
      open.pop_back();
    }
  }

  // The node of `__init` that makes the value, if it is not in its place. What is computed from parameters
  // gets its node here.
  Node* NodeLeft(const Value* value) {
    if (value == nullptr) return nullptr;
    if (value->at_load && value->folded != nullptr) {
      Node* node = value->folded;
      Value* output = node->outputs[0];
      output->constant.reset();
      output->at_load = false;
      output->producer = node;
      node->at_load = true;
      left_.insert(node);
      made_ = true;
    }
    return left_.contains(value->producer) ? value->producer : nullptr;
  }

  void Append(Node* node) {
    if (left_.erase(node) == 0) return;
    for (const Value* input : node->inputs)
      node->at_load = node->at_load || (input != nullptr && (input->at_load || IsMadeAtLoad(*input)));
    graph_.init.nodes.push_back(node);
  }

  static bool IsMadeAtLoad(const Value& value) {
    return value.producer != nullptr && value.producer->at_load;
  }

  Graph& graph_;
  std::unordered_set<Node*> left_;  // of `init`, and not in their place
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
    const ParameterSet& given = options_.initializers;
    if (given.Find(name) != given.size()) continue;
    if (kept_.contains(name)) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("constant '{}' cannot be a parameter: the program depends on its elements, as "
                              "on those of a shape, an axis or a scale of quantization; leave it out of the "
                              "parameters",
                              name));
    }
    if (known_.contains(name)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("the model has no constant '{}'{}", name,
                            KnownNames("constants", name, {known.data(), known.size()})));
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

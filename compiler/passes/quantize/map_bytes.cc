// SPDX-License-Identifier: Apache-2.0
//
// Looks up what is a function of a byte. Between two tensors of 8-bit integers, quantized models have chains
// of elementwise nodes with constants: activations, factors, or another scale. Such a chain gives one of 256
// results. They are computed before all runs, by the same kernels, and a run looks them up.
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

constexpr std::int64_t kBytes = 256;

// The value that another one is a function of, element by element, and the function's values for all 256
// bytes.
struct Mapped {
  Value* stored;
  Value* table;
};

class ByteMaps {
 public:
  explicit ByteMaps(Graph* graph) : graph_(*graph) {}

  void Run() {
    bool changed = false;
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) changed = Visit(node) || changed;
    });
    std::unordered_map<const Value*, Value*> same_dims;
    for (const auto& [value, mapped] : mapped_) same_dims[value] = mapped.stored;
    if (changed) graph_.MoveSymbols(same_dims);
    RemoveDeadCode(&graph_);  // what the chains computed, and tables of values that are no bytes
  }

 private:
  bool Visit(Node* node) {
    Value* stored = StoredOf(*node);
    if (stored == nullptr) return false;
    Value* output = node->outputs[0];
    Node* for_all = graph_.NewNode(NodeKind::kKernel);
    for_all->kernel = node->kernel;
    for_all->attributes = node->attributes;
    for_all->source = node->source;
    for (Value* input : node->inputs) {
      const bool varies = input != nullptr && !input->IsConstant();
      for_all->inputs.push_back(varies ? TableOf(input) : Flat(input));
    }
    Value* table = AddOutput(&graph_, for_all, output->name + ".table",
                             TensorOf(output->type.dtype, ShapeOfInts({kBytes})));
    graph_.init.nodes.push_back(for_all);
    mapped_[output] = {stored, table};
    if (node->kernel != names::kQuantizeLinear) return false;
    node->kernel = names::kMapBytes;
    node->attributes.clear();
    node->inputs = {stored, table};
    return true;
  }

  // The bytes that the node's output is a function of, if it is one and has their shape.
  Value* StoredOf(const Node& node) const {
    if (node.kind != NodeKind::kKernel || node.outputs.size() != 1 || node.returns || node.flags != 0 ||
        node.in_place || node.extents.size() != 1 || node.extents[0].shape != nullptr) {
      return nullptr;
    }
    const bool converts = QuantizationOf(node).has_value();
    if (!converts && (!IsElementwise(graph_, node, node.inputs.size()) || !IsPure(graph_, node)))
      return nullptr;
    Value* stored = nullptr;
    for (Value* input : node.inputs) {
      if (input == nullptr || (input->IsConstant() && HasOneElement(*input))) continue;
      Value* of_input = OriginOf(input, node);
      if (of_input == nullptr || (stored != nullptr && of_input != stored)) return nullptr;
      stored = of_input;
    }
    if (stored == nullptr || !stored->type.ranked ||
        ShapeText(stored->type.dims) != ShapeText(node.extents[0].dims))
      return nullptr;
    return stored;
  }

  // The value that an input of a node is a function of. A chain begins where bytes become floats.
  Value* OriginOf(Value* input, const Node& reader) const {
    const auto found = mapped_.find(input);
    if (found != mapped_.end()) return found->second.stored;
    const bool begins = reader.kernel == names::kDequantizeLinear && input == reader.inputs[0];
    return begins && !input->IsConstant() ? input : nullptr;
  }

  static bool HasOneElement(const Value& constant) {
    for (const std::int64_t dim : constant.constant->shape) {
      if (dim != 1) return false;
    }
    return true;
  }

  // The input of a chain's node, for all bytes.
  Value* TableOf(const Value* input) {
    const auto found = mapped_.find(input);
    if (found != mapped_.end()) return found->second.table;
    Value*& all = input->type.dtype == kInt8 ? all_signed_ : all_unsigned_;
    if (all != nullptr) return all;
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < kBytes; ++i) bytes.push_back(static_cast<std::byte>(i));
    all = graph_.NewValue("bytes", TensorOf(input->type.dtype, ShapeOfInts({kBytes})));
    HostTensor tensor;
    tensor.dtype = input->type.dtype;
    tensor.shape = {kBytes};
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    all->constant = std::move(tensor);
    return all;
  }

  // A constant of one element without axes, so that it gives a table none.
  Value* Flat(Value* constant) {
    if (constant == nullptr || constant->constant->shape.size() <= 1) return constant;
    return graph_.NewView(constant->name, constant, {});
  }

  Graph& graph_;
  std::unordered_map<const Value*, Mapped> mapped_;
  Value* all_signed_ = nullptr;
  Value* all_unsigned_ = nullptr;
};

}  // namespace

void MapBytes(Graph* graph) { ByteMaps(graph).Run(); }

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
//
// Takes rows out of a table before all of its elements are processed: gather(cast(w) * s, i) becomes
// cast(gather(w, i)) * gather(s, i), and so for dequantize_linear. Tables of 8-bit embeddings have such
// forms, and a run needs only few of their rows.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

class Gathers {
 public:
  explicit Gathers(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      for (Node* node : block->nodes) {
        if (IsGatherOfRows(*node)) MoveUp(node, &nodes);
        nodes.push_back(node);
      }
      block->nodes = std::move(nodes);
    });
    RemoveDeadCode(&graph_);
  }

 private:
  static bool IsGatherOfRows(const Node& node) {
    return node.kind == NodeKind::kKernel && node.kernel == names::kGather &&
           AttributesOf<contract::GatherAttributes>(node).axis == 0 && node.extents.size() == 1 &&
           node.extents[0].shape == nullptr && node.inputs[0]->type.rank() == 2;
  }

  // A constant [rows, 1], whose rows are to be gathered like those of the table.
  static bool IsColumn(const Value* value, const Shape& table) {
    return value->IsConstant() && value->type.rank() == 2 && value->type.dims[0] == table[0] &&
           value->type.dims[1].Is(1);
  }

  // By one scale and one zero for all elements.
  static bool IsDequantize(const Node& node) {
    if (node.kernel != names::kDequantizeLinear) return false;
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [](const Value* value) {
      return value->IsConstant() && ProductOf(value->type.dims).Is(1) && value->type.rank() <= 1;
    });
  }

  // The position of the table among the inputs of a node that works on all of its elements; -1: it is none.
  int TableOf(const Node& node) const {
    if (node.kind != NodeKind::kKernel || node.returns || node.outputs.size() != 1) return -1;
    if (IsElementwise(graph_, node, 1) || IsDequantize(node)) return 0;
    if (!IsElementwise(graph_, node, 2)) return -1;
    const Shape& dims = node.outputs[0]->type.dims;
    for (int i : {0, 1}) {
      const Value* other = node.inputs[static_cast<std::size_t>(1 - i)];
      const Value* table = node.inputs[static_cast<std::size_t>(i)];
      if (ShapeText(table->type.dims) != ShapeText(dims)) continue;
      if ((ScalarOf(other) && other->type.rank() <= 2) || IsColumn(other, dims)) return i;
    }
    return -1;
  }

  // Turns the gather into the last of the nodes that the table was made by, and puts the others before it.
  void MoveUp(Node* gather, std::vector<Node*>* nodes) {
    std::vector<const Node*> chain;  // from the gather back to the constant
    Value* table = gather->inputs[0];
    while (!table->IsConstant()) {
      const Node* maker = table->producer;
      const int at = maker == nullptr || edit_.UseCount(table) != 1 ? -1 : TableOf(*maker);
      if (at < 0) return;
      chain.push_back(maker);
      table = maker->inputs[static_cast<std::size_t>(at)];
    }
    if (chain.empty()) return;
    Value* indices = gather->inputs[1];
    const Shape dims = gather->extents[0].dims;
    Value* rows = Gathered(*gather, table, indices, dims, nodes);
    for (std::size_t i = chain.size(); i-- > 0;) {
      const Node& maker = *chain[i];
      Node* node = i == 0 ? gather : graph_.NewNode(NodeKind::kKernel);
      const auto at = static_cast<std::size_t>(TableOf(maker));
      std::vector<Value*> inputs = maker.inputs;
      inputs[at] = rows;
      if (inputs.size() == 2 && IsColumn(inputs[1 - at], maker.outputs[0]->type.dims)) {
        Shape column = dims;
        column.back() = DimExpr(1);
        inputs[1 - at] = Gathered(maker, inputs[1 - at], indices, column, nodes);
      }
      node->kernel = maker.kernel;
      node->attributes = maker.attributes;
      node->flags = maker.flags;
      node->inputs = std::move(inputs);
      if (node == gather) return;
      rows = graph_.NewValue(maker.outputs[0]->name, TensorOf(maker.outputs[0]->type.dtype, dims));
      Finish(node, rows, maker.source, nodes);
    }
  }

  // Rows of a constant, with a name and a source for those who look at the program.
  Value* Gathered(const Node& of, Value* table, Value* indices, const Shape& dims,
                  std::vector<Node*>* nodes) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = names::kGather;
    node->attributes.push_back({"axis", std::int64_t{0}});
    node->inputs = {table, indices};
    Value* rows = graph_.NewValue(table->name, TensorOf(table->type.dtype, dims));
    Finish(node, rows, of.source, nodes);
    return rows;
  }

  static void Finish(Node* node, Value* output, const std::string& source, std::vector<Node*>* nodes) {
    node->outputs.push_back(output);
    node->extents.push_back({output->type.dims, nullptr});
    node->source = source;
    output->producer = node;
    nodes->push_back(node);
  }

  Graph& graph_;
  Edit edit_;
};

}  // namespace

void GatherEarly(Graph* graph) { Gathers(graph).Run(); }

}  // namespace rewire::compiler

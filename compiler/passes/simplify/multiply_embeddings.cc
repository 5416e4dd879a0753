// SPDX-License-Identifier: Apache-2.0
//
// Multiplies a constant table whose rows a recurrent layer reads by the layer's input weights, when
// compiling: lstm(gather(t, i), w, ..) becomes lstm(gather(t * w + b, i), none, ..). The new table has one
// column per gate and unit of the layer, so this is only for tables of few rows, such as letters: the file
// shall not become larger than the model. A table of 16-bit floats becomes one of f32 by this; its rows are
// no longer cast.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/half.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/recurrent.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// Elements of a new table: 16 MiB, of which a run reads the rows that it needs.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
// A file may become so many bytes larger by a table in any case. That is less than the code and the names of
// a small model.
constexpr std::int64_t kSmallGrowth = 4096;

class Embeddings {
 public:
  explicit Embeddings(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (node->kind == NodeKind::kKernel && names::IsRecurrentLayer(node->kernel)) MultiplyTable(node);
      }
    });
    graph_.MoveSymbols(moved_);
    edit_.Finish();
  }

 private:
  // The cast from 16 bits that makes a layer's input for it alone; else null.
  Node* CastOf(const Node& layer) const {
    Node* cast = layer.inputs[0]->producer;
    if (cast == nullptr || cast->kind != NodeKind::kKernel || cast->kernel != names::kCast) return nullptr;
    const bool widens = IsHalf(cast->inputs[0]->type.dtype) && edit_.OnlyUser(layer.inputs[0]) == &layer;
    return widens ? cast : nullptr;
  }

  // The node that takes whole rows out of a constant matrix of floats for this node alone.
  Node* GatherOf(const Node& reader) const {
    Node* gather = reader.inputs[0]->producer;
    if (gather == nullptr || gather->kind != NodeKind::kKernel || gather->kernel != names::kGather ||
        AttributesOf<contract::GatherAttributes>(*gather).axis != 0 || gather->extents.size() != 1 ||
        gather->extents[0].shape != nullptr || edit_.OnlyUser(reader.inputs[0]) != &reader) {
      return nullptr;
    }
    const Value* table = gather->inputs[0];
    const bool floats = IsFloats(table) || (table->IsConstant() && IsHalf(table->type.dtype));
    return floats && table->type.rank() == 2 ? gather : nullptr;
  }

  // The bytes of weights that nothing reads but the nodes that a new table is for.
  std::int64_t BytesReplaced(std::initializer_list<const Value*> weights) const {
    std::size_t bytes = 0;
    for (const Value* value : weights) {
      if (edit_.UseCount(value) == 1) bytes += value->constant->bytes.view.size();
    }
    return static_cast<std::int64_t>(bytes);
  }

  // Whether a table of floats takes at most 1.1 of the bytes that it replaces, or few more.
  static bool IsSmall(std::int64_t elements, std::int64_t replaced) {
    const std::int64_t growth = elements * static_cast<std::int64_t>(sizeof(float)) - replaced;
    return growth <= std::max(kSmallGrowth, replaced / 10);
  }

  void MultiplyTable(Node* layer) {
    Node* cast = CastOf(*layer);
    Node* gather = GatherOf(cast == nullptr ? *layer : *cast);
    if (gather == nullptr || layer->inputs.size() < 3 || !IsFloats(layer->inputs[1])) return;
    const Ints weights = layer->inputs[1]->constant->shape;  // [directions, gates * hidden, inputs]
    const Ints table = gather->inputs[0]->constant->shape;   // [rows, inputs]
    if (weights.size() != 3 || weights[0] != 1 || weights[2] != table[1] || table[1] < 1) return;
    const std::int64_t width = weights[1];
    if (width < 1 || table[0] < 1 || table[0] > kMostElements / width) return;
    if (!IsSmall(table[0] * width, BytesReplaced({gather->inputs[0], layer->inputs[1]}))) return;
    Value* matrix = graph_.NewView(layer->inputs[1]->name, layer->inputs[1], {width, table[1]});
    std::vector<Value*> factors = {gather->inputs[0], matrix};
    if (layer->inputs.size() > 3 && layer->inputs[3] != nullptr) {
      Value* biases = layer->inputs[3];
      if (!IsFloats(biases) || biases->constant->shape != Ints{1, 2 * width}) return;
      const float* elements = FloatsOf(biases);
      factors.push_back(elements == nullptr
                            ? PartAtLoad(&graph_, graph_.NewView(biases->name, biases, {2, width}), 0)
                            : NewFloats(&graph_, biases->name, {width}, {elements, elements + width}));
    }
    if (cast != nullptr) {
      factors[0] = InF32(factors[0]);
      Value* rows = gather->outputs[0];
      rows->type.dtype = kFloat32;
      moved_[layer->inputs[0]] = rows;
      layer->inputs[0] = rows;
      edit_.Erase(cast);
    }
    gather->inputs[0] = Product(std::move(factors), {table[0], width});
    gather->extents[0].dims.back() = DimExpr(width);
    gather->outputs[0]->type.dims.back() = DimExpr(width);
    gather->outputs[0]->model_name.clear();  // it is the product now, and the model's rows are nowhere
    layer->inputs[1] = NewFloats(&graph_, layer->inputs[1]->name, {0}, {});  // none
  }

  // Ahead of all runs.
  Value* InF32(Value* half) {
    Value* wide = graph_.NewValue(half->name, TensorOf(kFloat32, half->type.dims));
    AddToInit(names::kCast, {half}, wide);
    return wide;
  }

  // Ahead of all runs.
  Value* Product(std::vector<Value*> factors, const Ints& dims) {
    Value* product = graph_.NewValue(factors[0]->name + ".multiplied", TensorOf(kFloat32, ShapeOfInts(dims)));
    AddToInit(names::kGemm, std::move(factors), product)->attributes = {{"transB", std::int64_t{1}}};
    return product;
  }

  Node* AddToInit(const char* kernel, std::vector<Value*> inputs, Value* output) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->source = inputs[0]->name;
    node->inputs = std::move(inputs);
    node->outputs.push_back(output);
    node->extents.push_back({output->type.dims, nullptr});
    output->producer = node;
    graph_.init.nodes.push_back(node);
    return node;
  }

  Graph& graph_;
  Edit edit_;
  std::unordered_map<const Value*, Value*> moved_;  // outputs of casts, and the rows that take their place
};

}  // namespace

void MultiplyEmbeddings(Graph* graph) { Embeddings(graph).Run(); }

}  // namespace rewire::compiler

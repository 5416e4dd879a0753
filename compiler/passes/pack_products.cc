// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products with constant weights become those of packed weights (docs/kernels.md),
// with the bias and the activation that follow. Packed weights are the same on every CPU: they go into the
// file.
//
// Packed convolutions have the channels last. A transpose stands before and behind each of them; the pass
// channels-last, which comes later, takes most of them out again.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/passes/follow_up.h"
#include "compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// More positions of a window the kernels do not take.
constexpr std::int64_t kMostTaps = 256;
// Panels are filled up to a multiple of this many columns.
constexpr std::int64_t kColumns = 16;

class Packing {
 public:
  explicit Packing(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (edit_.IsErased(node) || node->kind != NodeKind::kKernel) continue;
        if (node->kernel == "rewire.conv") PackConv(node);
        if (node->kernel == "rewire.matmul") PackMatMul(node);
        if (node->kernel == "rewire.gemm") PackGemm(node);
        if (node->kernel == "rewire.lstm") PackRecurrent(node, 4);
        if (node->kernel == "rewire.gru") PackRecurrent(node, 3);
        if (node->kernel == "rewire.rnn") PackRecurrent(node, 1);
      }
    });
    edit_.Finish();
    ForEachBlock(&graph_.main, [&](Block* block) { InsertTransposes(block); });
  }

 private:
  // The output f32[dims] of a kernel that works on weights ahead of all runs.
  Value* Prepared(const std::string& kernel, Value* weights, const Ints& dims,
                  std::vector<Attribute> attributes) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs.push_back(weights);
    node->source = weights->name;
    Value* prepared = graph_.NewValue(weights->name + ".packed", TensorOf(kFloat32, ShapeOfInts(dims)));
    prepared->producer = node;
    node->outputs.push_back(prepared);
    node->extents.push_back({prepared->type.dims, nullptr});
    graph_.init.nodes.push_back(node);
    return prepared;
  }

  Value* Packed(Value* weights, std::int64_t columns, std::int64_t depth, const char* order) {
    return Prepared("rewire.packed.pack", weights, {(columns + kColumns - 1) / kColumns * kColumns, depth},
                    {{"order", std::string(order)}});
  }

  void PackMatMul(Node* node) {
    Value* x = node->inputs[0];
    Value* weights = node->inputs[1];
    if (FloatsOf(weights) == nullptr || weights->type.rank() != 2 || x->type.rank() < 2) return;
    const Ints dims = weights->constant->shape;
    if (dims[0] < 1 || dims[1] < 1) return;
    Value* bias = TakeBias(&edit_, node, dims[1]);
    BecomeMatMul(node, Packed(weights, dims[1], dims[0], "IO"), bias, dims[1]);
  }

  void PackGemm(Node* node) {
    Value* weights = node->inputs[1];
    if (FloatsOf(weights) == nullptr || FloatAttribute(*node, "alpha", 1) != 1 ||
        FloatAttribute(*node, "beta", 1) != 1 || IntAttribute(*node, "transA", 0) != 0) {
      return;
    }
    const bool transposed = IntAttribute(*node, "transB", 0) != 0;
    const Ints dims = weights->constant->shape;
    const std::int64_t depth = dims[transposed ? 1 : 0];
    const std::int64_t columns = dims[transposed ? 0 : 1];
    if (depth < 1 || columns < 1) return;
    Value* bias = nullptr;
    if (node->inputs.size() > 2 && node->inputs[2] != nullptr) {
      const std::optional<std::vector<float>> terms = PerChannel(node->inputs[2], 2, 1, columns);
      if (!terms) return;
      bias = NewFloats(&graph_, node->inputs[2]->name, {columns}, *terms);
    }
    BecomeMatMul(node, Packed(weights, columns, depth, transposed ? "OI" : "IO"), bias, columns);
  }

  void BecomeMatMul(Node* node, Value* packed, Value* bias, std::int64_t columns) {
    node->kernel = "rewire.packed.matmul";
    node->attributes = {{"columns", columns}};
    node->inputs = {node->inputs[0], packed};
    if (bias != nullptr) node->inputs.push_back(bias);
    TakeActivation(&edit_, node);
  }

  // Both weights [directions, gates * hidden, inputs]; one direction only, since each is packed for itself.
  // The first are absent where the inputs are multiplied already.
  void PackRecurrent(Node* node, std::int64_t gates) {
    if (node->inputs.size() < 3 || FloatsOf(node->inputs[1]) == nullptr ||
        FloatsOf(node->inputs[2]) == nullptr) {
      return;
    }
    const std::size_t first = node->inputs[1]->constant->shape == Ints{0} ? 2 : 1;
    for (std::size_t i = first; i < 3; ++i) {
      const Ints& dims = node->inputs[i]->constant->shape;
      if (dims.size() != 3 || dims[0] != 1 || dims[1] < 1 || dims[2] < 1 || dims[1] % gates != 0) return;
      // The gates of a GRU are multiplied in two parts: each must begin a panel.
      if (gates == 3 && dims[1] / gates % kColumns != 0) return;
    }
    for (std::size_t i = first; i < 3; ++i) {
      const Ints dims = node->inputs[i]->constant->shape;
      node->inputs[i] = Packed(Matrix(*node->inputs[i], {dims[1], dims[2]}), dims[1], dims[2], "OI");
    }
    SetAttribute(node, "packed", std::int64_t{1});
  }

  void PackConv(Node* node) {
    Value* weights = node->inputs[1];
    if (FloatsOf(weights) == nullptr || !(node->inputs[0]->type.dtype == kFloat32)) return;
    if (node->extents.size() != 1 || node->extents[0].shape != nullptr) return;
    const Ints dims = weights->constant->shape;
    const std::int64_t taps = std::accumulate(dims.begin() + 2, dims.end(), std::int64_t{1},
                                              [](std::int64_t a, std::int64_t b) { return a * b; });
    const std::int64_t groups = IntAttribute(*node, "group", 1);
    const bool depthwise = groups > 1 && groups == dims[0] && dims[1] == 1;
    if ((dims.size() != 3 && dims.size() != 4) || dims[0] < 1 || dims[1] < 1 || taps < 1 || taps > kMostTaps)
      return;
    if (groups != 1 && !depthwise) return;
    std::vector<Attribute> attributes = {{"channels", dims[0]},
                                         {"kernel_shape", Ints(dims.begin() + 2, dims.end())}};
    for (const char* name : {"strides", "dilations", "pads", "auto_pad"}) {
      if (const Attribute* given = FindAttribute(*node, name)) attributes.push_back(*given);
    }
    Value* bias = node->inputs.size() > 2 ? node->inputs[2] : nullptr;
    Value* packed = depthwise ? Prepared("rewire.transpose", Matrix(*weights, {dims[0], taps}),
                                         {taps, dims[0]}, {{"perm", Ints{1, 0}}})
                              : Packed(weights, dims[0], dims[1] * taps, "OI");
    node->inputs = {node->inputs[0], packed};
    if (bias != nullptr) node->inputs.push_back(bias);
    node->kernel = depthwise ? "rewire.packed.depthwise" : "rewire.packed.conv";
    node->attributes = std::move(attributes);
    TakeActivation(&edit_, node);
    convolutions_.insert(node);
  }

  // The same elements under another shape.
  Value* Matrix(const Value& weights, const Ints& dims) {
    Value* matrix = graph_.NewValue(weights.name, TensorOf(kFloat32, ShapeOfInts(dims)));
    matrix->constant = weights.constant;
    matrix->constant->shape = dims;
    return matrix;
  }

  Node* Transpose(Value* from, Value* to, const Ints& perm, const std::string& source) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = "rewire.transpose";
    node->attributes.push_back({"perm", perm});
    node->inputs.push_back(from);
    node->outputs.push_back(to);
    node->extents.push_back({to->type.dims, nullptr});
    node->source = source;
    to->producer = node;
    return node;
  }

  void InsertTransposes(Block* block) {
    std::vector<Node*> nodes;
    for (Node* node : block->nodes) {
      if (!convolutions_.contains(node)) {
        nodes.push_back(node);
        continue;
      }
      Value* x = node->inputs[0];
      Value* y = node->outputs[0];
      Value* x_last = graph_.NewValue(x->name, TensorOf(x->type.dtype, ChannelsLastOf(x->type.dims)));
      Value* y_last = graph_.NewValue(y->name, TensorOf(y->type.dtype, ChannelsLastOf(y->type.dims)));
      const bool flat = x->type.rank() == 3;
      const Ints to_last = flat ? Ints{0, 2, 1} : Ints{0, 2, 3, 1};
      const Ints to_first = flat ? Ints{0, 2, 1} : Ints{0, 3, 1, 2};
      nodes.push_back(Transpose(x, x_last, to_last, node->source));
      node->inputs[0] = x_last;
      node->outputs[0] = y_last;
      y_last->producer = node;
      node->extents[0].dims = ChannelsLastOf(node->extents[0].dims);
      graph_.MoveSymbols(y, y_last, to_last);
      nodes.push_back(node);
      nodes.push_back(Transpose(y_last, y, to_first, node->source));
    }
    block->nodes = std::move(nodes);
  }

  static Shape ChannelsLastOf(Shape dims) {
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    return dims;
  }

  Graph& graph_;
  Edit edit_;
  std::unordered_set<const Node*> convolutions_;
};

}  // namespace

void PackProducts(Graph* graph) { Packing(graph).Run(); }

}  // namespace rewire::compiler

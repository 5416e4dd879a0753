// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products with constant weights become calls of oneDNN's (docs/kernels-onednn.md):
// the weights are packed once in `__init`, a bias and an activation that follow are done on the way out.
#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/edit.h"
#include "compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// Below this many weights calling oneDNN costs more than it gains.
constexpr std::int64_t kLeastWeights = 2048;

struct Activation {
  std::string name;
  double alpha = 0;
  double beta = 0;
};

std::optional<Activation> ActivationOf(const Node& node) {
  const std::string& kernel = node.kernel;
  if (kernel == "rewire.relu") return Activation{"relu"};
  if (kernel == "rewire.sigmoid") return Activation{"sigmoid"};
  if (kernel == "rewire.tanh") return Activation{"tanh"};
  if (kernel == "rewire.hard_swish") return Activation{"hard_swish"};
  if (kernel == "rewire.leaky_relu") return Activation{"leaky_relu", FloatAttribute(node, "alpha", 0.01)};
  if (kernel == "rewire.gelu" && node.attributes.empty()) return Activation{"gelu"};
  if (kernel == "rewire.clip" && FindAttribute(node, "min") != nullptr &&
      FindAttribute(node, "max") != nullptr) {
    return Activation{"clip", FloatAttribute(node, "min", 0), FloatAttribute(node, "max", 0)};
  }
  return std::nullopt;
}

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
      }
    });
    edit_.Finish();
  }

 private:
  // The weights as `__init` packs them.
  Value* Packed(const std::string& kernel, Value* weights, std::vector<Attribute> attributes) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs.push_back(weights);
    node->returns = true;
    node->source = weights->name;
    const DimExpr open = DimExpr::Symbol(graph_.FreshSymbol("bytes"));
    Value* packed = graph_.NewValue(weights->name + ".packed", TensorOf(kUInt8, {open}));
    packed->producer = node;
    node->outputs.push_back(packed);
    graph_.init.nodes.push_back(node);
    return packed;
  }

  // Turns `node` into the packed kernel and lets it do what follows.
  void Become(Node* node, const std::string& kernel, Value* packed, Value* bias,
              std::vector<Attribute> attributes) {
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs = {node->inputs[0], packed, bias};
    Node* user = edit_.OnlyUser(node->outputs[0]);
    if (user == nullptr || user->outputs.size() != 1 || !SameShape(*node, *user)) return;
    const std::optional<Activation> activation = ActivationOf(*user);
    if (!activation) return;
    SetAttribute(node, "activation", activation->name);
    if (activation->alpha != 0) SetAttribute(node, "alpha", activation->alpha);
    if (activation->beta != 0) SetAttribute(node, "beta", activation->beta);
    edit_.TakeOver(node, user);
  }

  static bool SameShape(const Node& a, const Node& b) {
    return !a.extents.empty() && !b.extents.empty() && a.extents[0].shape == nullptr &&
           b.extents[0].shape == nullptr &&
           ShapeText(a.outputs[0]->type.dims) == ShapeText(b.outputs[0]->type.dims);
  }

  Value* Zeros(const std::string& name, std::int64_t count) {
    return NewFloats(&graph_, name + ".bias", {count}, std::vector<float>(static_cast<std::size_t>(count)));
  }

  // The spatial sizes that packing is tuned for, where they are known.
  static Ints SizesOf(const Value* x) {
    Ints sizes;
    for (std::size_t i = 2; i < x->type.dims.size(); ++i) {
      const std::optional<std::int64_t> size = x->type.dims[i].constant();
      if (!size) return {};
      sizes.push_back(*size);
    }
    return sizes;
  }

  void PackConv(Node* node) {
    Value* weights = node->inputs[1];
    if (FloatsOf(weights) == nullptr || !(node->inputs[0]->type.dtype == kFloat32)) return;
    const Attribute* auto_pad = FindAttribute(*node, "auto_pad");
    if (auto_pad != nullptr && std::get<std::string>(auto_pad->value) != "NOTSET") return;
    const Ints& dims = weights->constant->shape;
    // One axis gains nothing; and packing is for what is large.
    if (dims.size() != 4 || ProductOf(ShapeOfInts(dims)).constant().value_or(0) < 64) return;
    std::vector<Attribute> attributes = {{"weights", dims}};
    for (const char* name : {"group", "strides", "dilations", "pads"}) {
      if (const Attribute* given = FindAttribute(*node, name)) attributes.push_back(*given);
    }
    if (Ints sizes = SizesOf(node->inputs[0]); !sizes.empty()) attributes.push_back({"sizes", sizes});
    const bool has_bias = node->inputs.size() > 2 && node->inputs[2] != nullptr;
    Value* bias = has_bias ? node->inputs[2] : Zeros(weights->name, dims[0]);
    Value* packed = Packed("rewire.onednn.pack_conv", weights, attributes);
    Become(node, "rewire.onednn.conv", packed, bias, std::move(attributes));
  }

  // Rows that are known, for tuning; otherwise the kernel's default.
  static void AddRows(const Value* x, std::vector<Attribute>* attributes) {
    Shape rows = x->type.dims;
    rows.pop_back();
    const std::optional<std::int64_t> count = ProductOf(rows).constant();
    if (count && *count > 0) attributes->push_back({"rows", *count});
  }

  void PackMatMul(Node* node) {
    Value* x = node->inputs[0];
    Value* weights = node->inputs[1];
    if (FloatsOf(weights) == nullptr || weights->type.rank() != 2 || x->type.rank() < 2) return;
    const Ints dims = weights->constant->shape;
    if (dims[0] < 1 || dims[1] < 1 || dims[0] * dims[1] < kLeastWeights) return;
    std::vector<Attribute> attributes = {{"depth", dims[0]}, {"columns", dims[1]}};
    AddRows(x, &attributes);
    Value* bias = TakeBias(node, dims[1]);
    if (bias == nullptr) bias = Zeros(weights->name, dims[1]);
    Value* packed = Packed("rewire.onednn.pack_matmul", weights, attributes);
    Become(node, "rewire.onednn.matmul", packed, bias, std::move(attributes));
  }

  // The term for each column that the only user adds; that node is gone then.
  Value* TakeBias(Node* node, std::int64_t columns) {
    Node* user = edit_.OnlyUser(node->outputs[0]);
    if (user == nullptr || user->kernel != "rewire.add" || !SameShape(*node, *user)) return nullptr;
    Value* other = user->inputs[user->inputs[0] == node->outputs[0] ? 1 : 0];
    const int rank = node->outputs[0]->type.rank();
    const std::optional<std::vector<float>> terms = PerChannel(other, rank, rank - 1, columns);
    if (!terms) return nullptr;
    edit_.TakeOver(node, user);
    return NewFloats(&graph_, other->name, {columns}, *terms);
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
    if (depth < 1 || columns < 1 || depth * columns < kLeastWeights) return;
    Value* bias = Zeros(weights->name, columns);
    if (node->inputs.size() > 2 && node->inputs[2] != nullptr) {
      const std::optional<std::vector<float>> terms = PerChannel(node->inputs[2], 2, 1, columns);
      if (!terms) return;
      bias = NewFloats(&graph_, node->inputs[2]->name, {columns}, *terms);
    }
    std::vector<Attribute> attributes = {{"depth", depth}, {"columns", columns}};
    AddRows(node->inputs[0], &attributes);
    std::vector<Attribute> packing = attributes;
    if (transposed) packing.push_back({"transposed", std::int64_t{1}});
    Value* packed = Packed("rewire.onednn.pack_matmul", weights, std::move(packing));
    Become(node, "rewire.onednn.matmul", packed, bias, std::move(attributes));
  }

  Graph& graph_;
  Edit edit_;
};

}  // namespace

void PackProducts(Graph* graph) { Packing(graph).Run(); }

}  // namespace rewire::compiler

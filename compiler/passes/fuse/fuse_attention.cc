// SPDX-License-Identifier: Apache-2.0
//
// Attention as exporters spell it out becomes one kernel, which keeps no matrix of scores:
//   matmul(softmax(matmul(q, transpose(k)) * scale + bias), v)
// The factor may stand at the scores, at q or at the keys, as a product or a quotient, and the bias may be
// missing. A choice between scores and a number that hides keys becomes a mask. Where q is cut into heads
// just before, and the heads are joined just behind, the kernel does both. It also takes k and v uncut.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/sources.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// [batch, length, heads, size] becomes [batch, heads, length, size], or the other way round.
const Ints kSwapHeads = {0, 2, 1, 3};

struct Match {
  Value* q = nullptr;
  Value* k = nullptr;  // as [.., keys, size] after a transposition by `perm`
  Ints perm;
  Value* v = nullptr;
  Value* bias = nullptr;
  const Node* choice = nullptr;  // a rewire.where between the product and the bias
  double scale = 1;
};

// A number so low that any score that it is added to becomes this number.
constexpr float kHidden = -1e30F;

bool AreFloats(const Value* value, int rank) {
  return value->type.IsTensor() && value->type.ranked && value->type.dtype == kFloat32 &&
         value->type.rank() == rank;
}

// No dimension is below 0, so that the larger one of it and 0 is the same.
bool IsSame(const DimExpr& a, const DimExpr& b) {
  return a == b || a == DimExpr::Max(b, 0) || b == DimExpr::Max(a, 0);
}

bool HasDims(const Value* value, const Shape& dims) {
  const Shape& own = value->type.dims;
  return std::equal(own.begin(), own.end(), dims.begin(), dims.end(), IsSame);
}

bool IsIdentity(const Ints& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

class AttentionFusing {
 public:
  explicit AttentionFusing(Graph* graph) : graph_(*graph), edit_(graph) {
    for (const auto& [name, source] : graph->symbols()) measured_.insert(source.value);
  }

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      for (Node* node : block->nodes) {
        if (const std::optional<Match> match = MatchOf(*node)) Fuse(node, *match, &nodes);
        nodes.push_back(node);
      }
      block->nodes = std::move(nodes);
    });
    edit_.Finish();
    RemoveDeadCode(&graph_);
  }

 private:
  // Whether nothing is lost if this value is not computed: one node reads it, and no dimension is taken from
  // it.
  bool IsInner(const Value* value) const { return edit_.UseCount(value) == 1 && !measured_.contains(value); }

  // The product that a value is, after factors are taken off it.
  const Node* ProductOf(Value* value, double* scale) const {
    if (!IsInner(value)) return nullptr;
    while (const std::optional<double> factor = TakeScalar(edit_, &value)) {
      *scale *= *factor;
      if (!IsInner(value)) return nullptr;
    }
    return ProducerOf(value, names::kMatMul);
  }

  // The product of queries and keys that become these scores.
  const Node* ScoresOf(Value* scores, Match* match) const {
    if (const Node* product = ChosenOf(scores, match)) return product;
    const Node* sum = IsInner(scores) ? ProducerOf(scores, names::kAdd) : nullptr;
    if (sum == nullptr) return nullptr;
    for (const std::size_t i : {0, 1}) {
      const Node* product = ChosenOf(sum->inputs[i], match);
      if (product == nullptr) continue;
      match->bias = sum->inputs[1 - i];
      return product;
    }
    return nullptr;
  }

  // The same without a bias.
  const Node* ChosenOf(Value* scores, Match* match) const {
    match->choice = nullptr;
    match->scale = 1;
    if (const Node* product = ProductOf(scores, &match->scale)) return product;
    const Node* choice = IsInner(scores) ? ProducerOf(scores, names::kWhere) : nullptr;
    if (choice == nullptr) return nullptr;
    const std::size_t number = HiddenOf(*choice);
    const std::optional<float> hidden = ScalarOf(choice->inputs[number]);
    const bool adds_axes = choice->inputs[number]->type.rank() > choice->inputs[0]->type.rank();
    if (!hidden || !(*hidden <= kHidden) || adds_axes) return nullptr;
    match->choice = choice;
    match->scale = 1;
    return ProductOf(choice->inputs[3 - number], &match->scale);
  }

  // The input of a choice that is the number in place of scores.
  static std::size_t HiddenOf(const Node& choice) { return ScalarOf(choice.inputs[1]) ? 1 : 2; }

  std::optional<Match> MatchOf(const Node& node) const {
    if (node.kind != NodeKind::kKernel || node.kernel != names::kMatMul) return std::nullopt;
    const Value* weights = node.inputs[0];
    const Node* softmax = ProducerOf(weights, names::kSoftmax);
    if (softmax == nullptr || !IsInner(weights)) return std::nullopt;
    const int rank = weights->type.rank();
    const std::int64_t axis = AttributesOf<contract::SoftmaxAttributes>(*softmax).axis;
    if ((rank != 3 && rank != 4) || (axis != -1 && axis != rank - 1)) return std::nullopt;
    Match match;
    const Node* product = ScoresOf(softmax->inputs[0], &match);
    if (product == nullptr) return std::nullopt;
    match.q = product->inputs[0];
    Value* keys = product->inputs[1];
    for (Value** side : {&match.q, &keys}) {
      while (IsInner(*side)) {
        const std::optional<double> factor = TakeScalar(edit_, side);
        if (!factor) break;
        match.scale *= *factor;
      }
    }
    const Node* turn = ProducerOf(keys, names::kTranspose);
    const std::optional<Ints> perm = turn == nullptr ? std::nullopt : IntsAttribute(*turn, "perm");
    if (!perm || match.scale == 0) return std::nullopt;
    match.k = turn->inputs[0];
    match.perm = *perm;
    match.v = node.inputs[1];
    if (!Fits(match, *keys, *weights, *node.outputs[0])) return std::nullopt;
    std::swap(match.perm[match.perm.size() - 1], match.perm[match.perm.size() - 2]);
    return match;
  }

  // Whether nothing is broadcast but the bias. `keys` is [.., size, keys].
  static bool Fits(const Match& match, const Value& keys, const Value& weights, const Value& out) {
    const int rank = weights.type.rank();
    for (const Value* value :
         {static_cast<const Value*>(match.q), &keys, static_cast<const Value*>(match.v), &weights, &out}) {
      if (!AreFloats(value, rank)) return false;
    }
    if (match.perm.size() != static_cast<std::size_t>(rank)) return false;
    const std::size_t last = static_cast<std::size_t>(rank) - 1;
    const Shape &q = match.q->type.dims, &v = match.v->type.dims;
    Shape of_keys = q, of_weights = q, of_values = q, of_out = q;
    of_keys[last - 1] = q[last];
    of_keys[last] = of_values[last - 1] = keys.type.dims[last];
    // The model multiplies as many weights as values, so the kernel's strict check is the model's own.
    of_weights[last] = weights.type.dims[last];
    of_values[last] = of_out[last] = v[last];
    // The kernel takes no heads and no elements for a mistake.
    const std::optional<std::int64_t> size = q[last].constant();
    const std::optional<std::int64_t> heads = rank == 4 ? q[1].constant() : 1;
    if (!size || *size < 1 || !heads || *heads < 1) return false;
    // The kernel adds an axis of heads to tensors of rank 3, in front of which a bias would be aligned in
    // another way.
    const auto fits = [&](const Value* term, DLDataType dtype) {
      const Type& type = term->type;
      return type.IsTensor() && type.ranked && type.dtype == dtype && type.rank() <= (rank == 3 ? 2 : 4);
    };
    return (match.bias == nullptr || fits(match.bias, kFloat32)) &&
           (match.choice == nullptr || fits(match.choice->inputs[0], kBool8)) && HasDims(&keys, of_keys) &&
           HasDims(&weights, of_weights) && HasDims(match.v, of_values) && HasDims(&out, of_out);
  }

  void Fuse(Node* node, const Match& match, std::vector<Node*>* before) {
    Value* k = match.k;
    Value* v = match.v;
    AddSourcesBehind(node, {match.q, match.k, match.v, match.bias,
                            match.choice == nullptr ? nullptr : match.choice->inputs[0]});
    node->attributes = {{"scale", match.scale}};
    Value *joined_k = match.perm == kSwapHeads ? JoinedOf(k) : nullptr, *joined_v = JoinedBefore(v);
    if (joined_k != nullptr && joined_v != nullptr) {
      k = joined_k;
      v = joined_v;
      node->attributes.push_back({"heads", *match.q->type.dims[1].constant()});
    } else if (!IsIdentity(match.perm)) {
      Shape dims;
      for (const std::int64_t axis : match.perm) dims.push_back(k->type.dims[static_cast<std::size_t>(axis)]);
      Value* turned = graph_.NewValue(k->name, TensorOf(kFloat32, std::move(dims)));
      before->push_back(NewTranspose(&graph_, k, turned, match.perm, node->source));
      k = turned;
    }
    if (match.q->type.rank() == 3) {
      k = WithHead(k, *node, before);
      v = WithHead(v, *node, before);
    }
    node->kernel = names::kAttention;
    node->inputs = {match.q, k, v};
    if (match.bias != nullptr || match.choice != nullptr) {
      Value* none = NewFloats(&graph_, "none", {0}, {});
      node->inputs.insert(node->inputs.end(), {none, none, match.bias != nullptr ? match.bias : none});
      node->attributes.push_back({"strict", std::int64_t{1}});
    }
    if (match.choice != nullptr) {
      node->inputs.push_back(MaskOf(*match.choice, before));
      const float hidden = *ScalarOf(match.choice->inputs[HiddenOf(*match.choice)]);
      if (!std::isinf(hidden)) node->attributes.push_back({"hidden", double{hidden}});
    }
    JoinHeads(node);
  }

  // True where keys are seen.
  Value* MaskOf(const Node& choice, std::vector<Node*>* before) {
    Value* condition = choice.inputs[0];
    if (HiddenOf(choice) == 2) return condition;
    if (const Node* opposite = ProducerOf(condition, names::kNot)) return opposite->inputs[0];
    Node* node = graph_.NewNode(NodeKind::kKernel);
    Value* seen = graph_.NewValue(condition->name, condition->type);
    node->kernel = names::kNot;
    node->inputs = {condition};
    node->outputs = {seen};
    node->extents = {{seen->type.dims, nullptr}};
    node->source = choice.source;
    seen->producer = node;
    before->push_back(node);
    return seen;
  }

  // [batch, length, size] as [batch, 1, length, size].
  Value* WithHead(Value* value, const Node& user, std::vector<Node*>* before) {
    Shape dims = value->type.dims;
    dims.insert(dims.begin() + 1, DimExpr(1));
    Node* node = graph_.NewNode(NodeKind::kReshape);
    Value* seen = graph_.NewValue(value->name, TensorOf(kFloat32, dims));
    node->inputs = {value};
    node->outputs = {seen};
    node->extents = {{dims, nullptr}};
    node->source = user.source;
    seen->producer = node;
    before->push_back(node);
    return seen;
  }

  static bool SwapsHeads(const Node* turn) {
    return turn != nullptr && turn->kernel == names::kTranspose && IntsAttribute(*turn, "perm") == kSwapHeads;
  }

  // [batch, length, heads * size] that becomes this value [batch, length, heads, size]; null if there is
  // none.
  static Value* JoinedOf(const Value* cut) {
    const Node* node = cut->producer;
    if (node == nullptr || node->kind != NodeKind::kReshape || cut->type.rank() != 4) return nullptr;
    const Shape& dims = cut->type.dims;
    Value* whole = node->inputs[0];
    return HasDims(whole, {dims[0], dims[1], dims[2] * dims[3]}) ? whole : nullptr;
  }
  // The same for [batch, heads, length, size].
  static Value* JoinedBefore(const Value* heads) {
    return SwapsHeads(heads->producer) ? JoinedOf(heads->producer->inputs[0]) : nullptr;
  }

  // Leaves out that q [batch, length, heads * size] is cut into heads, and the result is joined again.
  void JoinHeads(Node* node) {
    Value* whole = node->inputs[0]->type.rank() == 4 ? JoinedBefore(node->inputs[0]) : nullptr;
    Value* out = node->outputs[0];
    Node* turn = edit_.OnlyUser(out);
    if (whole == nullptr || !SwapsHeads(turn) || measured_.contains(out)) return;
    Value* turned = turn->outputs[0];
    Node* join = edit_.OnlyUser(turned);
    if (join == nullptr || join->kind != NodeKind::kReshape || measured_.contains(turned)) return;
    Value* joined = join->outputs[0];
    const Shape& dims = out->type.dims;
    if (!HasDims(joined, {dims[0], dims[2], dims[1] * dims[3]})) return;
    node->inputs[0] = whole;
    node->outputs[0] = joined;
    node->extents[0] = {joined->type.dims, nullptr};
    joined->producer = node;
    edit_.Erase(turn);
    edit_.Erase(join);
  }

  Graph& graph_;
  Edit edit_;
  std::unordered_set<const Value*> measured_;  // of which symbols are dimensions
};

}  // namespace

void FuseAttention(Graph* graph) { AttentionFusing(graph).Run(); }

}  // namespace rewire::compiler

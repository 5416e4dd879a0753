// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/kernels/contract/elementwise.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace rewire::compiler {
namespace {

struct Activation {
  std::string name;
  double alpha = 0;
  double beta = 0;
};

std::optional<Activation> ActivationOf(const Node& node) {
  const std::string& kernel = node.kernel;
  if (kernel == names::kRelu) return Activation{"relu"};
  if (kernel == names::kSigmoid) return Activation{"sigmoid"};
  if (kernel == names::kTanh) return Activation{"tanh"};
  if (kernel == names::kHardSwish) return Activation{"hard_swish"};
  if (kernel == names::kSwish) return Activation{"swish"};
  if (kernel == names::kLeakyRelu) return Activation{"leaky_relu", FloatAttribute(node, "alpha", 0.01)};
  if (kernel == names::kPRelu) {
    const std::optional<float> slope = ScalarOf(node.inputs[1]);
    return slope ? std::optional(Activation{"leaky_relu", double{*slope}}) : std::nullopt;
  }
  if (kernel == names::kGelu && node.attributes.empty()) return Activation{"gelu"};
  if (kernel == names::kClip && FindAttribute(node, "min") != nullptr &&
      FindAttribute(node, "max") != nullptr) {
    return Activation{"clip", FloatAttribute(node, "min", 0), FloatAttribute(node, "max", 0)};
  }
  return std::nullopt;
}

// scale * x + shift.
struct Move {
  double scale = 1;
  double shift = 0;

  // In f32, as the kernels compute.
  bool IsFinite() const {
    return std::isfinite(static_cast<float>(scale)) && std::isfinite(static_cast<float>(shift));
  }
};

// Whether a kernel computes both, one after the other, as the two nodes do: a factor, then a term.
bool IsSeparate(const Move& before, const Node& node) {
  if (before.shift != 0) return false;
  return node.kernel == names::kMul ? before.scale == 1
                                    : node.kernel == names::kAdd || node.kernel == names::kSub;
}

// The move that the node does to `x` behind `before`.
std::optional<Move> MoveOf(const Node& node, const Value* x, const Move& before) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return std::nullopt;
  const bool first = node.inputs[0] == x;
  const std::optional<float> constant = ScalarOf(node.inputs[first ? 1 : 0]);
  if (!constant) return std::nullopt;
  const double c = *constant;
  if (node.kernel == names::kMul) return Move{before.scale * c, before.shift * c};
  if (node.kernel == names::kDiv && first) return Move{before.scale / c, before.shift / c};
  if (node.kernel == names::kAdd) return Move{before.scale, before.shift + c};
  if (node.kernel == names::kSub)
    return first ? Move{before.scale, before.shift - c} : Move{-before.scale, c - before.shift};
  return std::nullopt;
}

}  // namespace

bool SameShape(const Node& a, const Node& b) {
  return !a.extents.empty() && !b.extents.empty() && a.extents[0].shape == nullptr &&
         b.extents[0].shape == nullptr &&
         ShapeText(a.outputs[0]->type.dims) == ShapeText(b.outputs[0]->type.dims);
}

Value* TakeBias(Edit* edit, Node* node, std::int64_t columns) {
  Node* user = edit->OnlyUser(node->outputs[0]);
  if (user == nullptr || user->kernel != names::kAdd || !SameShape(*node, *user)) return nullptr;
  Value* other = user->inputs[user->inputs[0] == node->outputs[0] ? 1 : 0];
  const int rank = node->outputs[0]->type.rank();
  const std::optional<std::vector<float>> terms = PerChannel(other, rank, rank - 1, columns);
  if (!terms) return nullptr;
  edit->TakeOver(node, user);
  return NewFloats(&edit->graph(), other->name, {columns}, *terms);
}

bool TakeActivation(Edit* edit, Node* node) {
  Node* user = edit->OnlyUser(node->outputs[0]);
  if (user == nullptr || user->outputs.size() != 1 || !SameShape(*node, *user)) return false;
  const std::optional<Activation> activation = ActivationOf(*user);
  if (!activation) return false;
  SetAttribute(node, "activation", activation->name);
  if (activation->alpha != 0) SetAttribute(node, "alpha", activation->alpha);
  if (activation->beta != 0) SetAttribute(node, "beta", activation->beta);
  edit->TakeOver(node, user);
  return true;
}

void TakeMoves(Edit* edit, Node* node) {
  Move move;
  while (Node* user = edit->OnlyUser(node->outputs[0])) {
    if (user->outputs.size() != 1 || !SameShape(*node, *user)) break;
    const std::optional<Move> next = MoveOf(*user, node->outputs[0], move);
    if (!next || !next->IsFinite()) break;
    if (edit->graph().strict && !IsSeparate(move, *user)) break;
    move = *next;
    edit->TakeOver(node, user);
  }
  if (move.scale != 1) SetAttribute(node, "post_scale", move.scale);
  if (move.shift != 0) SetAttribute(node, "post_shift", move.shift);
}

void TakeMovedActivation(Edit* edit, Node* node) {
  if (TakeActivation(edit, node)) TakeMoves(edit, node);
}

Value* ZeroBias(Graph* graph, const std::string& name, std::int64_t count) {
  return NewFloats(graph, name + ".bias", {count}, std::vector<float>(static_cast<std::size_t>(count)));
}

}  // namespace rewire::compiler

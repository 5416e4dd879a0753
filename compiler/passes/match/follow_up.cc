// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/follow_up.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "rewire/kernels/contract/activation.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

struct Activation {
  std::string name;
  double alpha = 0;
  double beta = 0;
};

// The number that the node's attribute becomes; nullopt if it must be given and is not.
std::optional<double> NumberOf(const Node& node, const names::ActivationNumber& number) {
  if (number.attribute == nullptr) return 0;
  if (FindAttribute(node, number.attribute) == nullptr) return number.otherwise;
  return FloatAttribute(node, number.attribute, 0);
}

std::optional<Activation> ActivationOf(const Node& node) {
  if (node.kernel == names::kPRelu) {
    const std::optional<float> slope = ScalarOf(node.inputs[1]);
    return slope ? std::optional(Activation{std::string(names::Stem(names::kLeakyRelu)), double{*slope}})
                 : std::nullopt;
  }
  for (const names::ActivationForm& form : names::kActivationForms) {
    if (node.kernel != form.kernel) continue;
    const std::optional<double> alpha = NumberOf(node, form.alpha), beta = NumberOf(node, form.beta);
    // Other attributes choose another function, as that of the tanh form of gelu.
    const auto is_number = [&](const Attribute& attribute) {
      return (form.alpha.attribute != nullptr && attribute.name == form.alpha.attribute) ||
             (form.beta.attribute != nullptr && attribute.name == form.beta.attribute);
    };
    const bool same = std::all_of(node.attributes.begin(), node.attributes.end(), is_number);
    if (!alpha || !beta || !same) return std::nullopt;
    return Activation{std::string(names::Stem(form.kernel)), *alpha, *beta};
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
  Value* terms = ChannelVector(&edit->graph(), other, rank, rank - 1, columns);
  if (terms != nullptr) edit->TakeOver(node, user);
  return terms;
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

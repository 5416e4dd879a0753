// SPDX-License-Identifier: Apache-2.0
//
// Group normalization as exporters spell it out by instance normalization:
//   reshape(instance_norm(reshape(x, [N, groups, -1])), shape of x) * scale + bias
// The factors and terms for each channel go into the normalization, also those behind one that has no
// reshapes. So it is one call, which can work with the channels last.
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::compiler {
namespace {

bool IsReshape(const Node* node) {
  return node != nullptr && node->kind == NodeKind::kReshape && node->extents.size() == 1 &&
         node->extents[0].shape == nullptr;
}

bool IsNorm(const Node* node) {
  return node != nullptr && node->kind == NodeKind::kKernel && node->kernel == names::kGroupNorm;
}

// A factor and a term for each channel.
struct Factors {
  std::vector<float> scale;
  std::vector<float> bias;
};

// The factors of `channels` channels, from as many constants or from one for each group.
std::optional<Factors> FactorsOf(const Node& norm, std::int64_t channels, std::int64_t groups) {
  Factors factors;
  for (const auto& [input, to] :
       {std::pair{norm.inputs[1], &factors.scale}, {norm.inputs[2], &factors.bias}}) {
    const float* values = FloatsOf(input);
    if (values == nullptr || input->constant->shape.size() != 1) return std::nullopt;
    const std::int64_t count = input->constant->shape[0];
    if (count < 1 || (count != channels && count != groups) || channels % count != 0) return std::nullopt;
    for (std::int64_t c = 0; c < channels; ++c) to->push_back(values[c / (channels / count)]);
  }
  return factors;
}

// Turns the reshape behind an instance normalization of groups into the normalization of groups. Returns
// whether it did.
bool TakeReshapes(const Edit& edit, Node* node) {
  if (!IsReshape(node) || !node->outputs[0]->type.ranked) return false;
  const Node* norm = node->inputs[0]->producer;
  if (!IsNorm(norm) || FindAttribute(*norm, "num_groups") != nullptr || edit.UseCount(norm->outputs[0]) != 1)
    return false;
  const Node* first = norm->inputs[0]->producer;
  if (!IsReshape(first) || !first->outputs[0]->type.ranked) return false;
  Value* x = first->inputs[0];
  const Shape &dims = node->outputs[0]->type.dims, &parts = first->outputs[0]->type.dims;
  if (!x->type.ranked || dims.size() < 2 || parts.size() < 2 || ShapeText(x->type.dims) != ShapeText(dims) ||
      ShapeText({dims[0]}) != ShapeText({parts[0]})) {
    return false;
  }
  const std::optional<std::int64_t> channels = dims[1].constant(), groups = parts[1].constant();
  if (!channels || !groups || *groups < 1 || *channels % *groups != 0) return false;
  // One number for each channel of the instance normalization.
  const std::vector count = {*groups};
  for (std::size_t i : {1, 2}) {
    if (!norm->inputs[i]->IsConstant() || norm->inputs[i]->constant->shape != count) return false;
  }
  node->kind = NodeKind::kKernel;
  node->kernel = names::kGroupNorm;
  node->attributes = norm->attributes;
  node->attributes.push_back({"num_groups", *groups});
  node->source = JoinNotes(JoinNotes(norm->source, first->source), node->source);
  node->inputs = {x, norm->inputs[1], norm->inputs[2]};
  return true;
}

// Takes the product and the sum behind the normalization into its factors.
void TakeFactors(Edit* edit, Node* norm) {
  const Type& type = norm->outputs[0]->type;
  const std::optional<std::int64_t> channels =
      type.ranked && type.rank() >= 2 ? type.dims[1].constant() : std::nullopt;
  if (!channels) return;
  const std::int64_t groups = IntAttribute(*norm, "num_groups", *channels);
  std::optional<Factors> factors = FactorsOf(*norm, *channels, groups);
  if (!factors) return;
  bool changes = false;
  std::string names[2] = {norm->inputs[1]->name, norm->inputs[2]->name};
  while (Node* user = edit->OnlyUser(norm->outputs[0])) {
    const bool is_product = user->kernel == names::kMul;
    if ((!is_product && user->kernel != names::kAdd) || user->inputs.size() != 2 || !SameShape(*norm, *user))
      break;
    const Value* other = user->inputs[user->inputs[0] == norm->outputs[0] ? 1 : 0];
    const std::optional<std::vector<float>> by = PerChannel(other, type.rank(), 1, *channels);
    if (!by) break;
    for (std::size_t c = 0; c < by->size(); ++c) {
      if (is_product) factors->scale[c] *= (*by)[c];
      factors->bias[c] = is_product ? factors->bias[c] * (*by)[c] : factors->bias[c] + (*by)[c];
    }
    names[is_product ? 0 : 1] = other->name;
    edit->TakeOver(norm, user);
    changes = true;
  }
  if (!changes) return;
  norm->inputs[1] = NewFloats(&edit->graph(), names[0] + ".factor", {*channels}, factors->scale);
  norm->inputs[2] = NewFloats(&edit->graph(), names[1] + ".term", {*channels}, factors->bias);
}

}  // namespace

void FuseGroupNorm(Graph* graph) {
  Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (edit.IsErased(node)) continue;
      if (!TakeReshapes(edit, node) && !IsNorm(node)) continue;
      if (node->outputs[0]->type.dtype == kFloat32) TakeFactors(&edit, node);
    }
  });
  edit.Finish();
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/columns.h"

#include <algorithm>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/sharding.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

constexpr int kMostReaders = 8;  // nodes between a product and what cuts its columns

std::int64_t CutAxis(const Node& node, int rank) {
  const std::int64_t axis = IntAttribute(node, "axis", 0);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

ShardColumns::ShardColumns(const Graph& graph, std::int64_t ranks) : graph_(graph), ranks_(ranks) {
  Collect(graph.main);
}

void ShardColumns::Collect(const Block& block) {
  for (const Node* node : block.nodes) {
    for (const Value* input : node->inputs) users_[input].push_back(node);
    for (const Block& inner : node->blocks) Collect(inner);
  }
  for (const Value* result : block.results) users_[result].push_back(nullptr);
}

std::size_t ShardColumns::UseCount(const Value& value) const {
  const auto found = users_.find(&value);
  return found == users_.end() ? 0 : found->second.size();
}

void ShardColumns::Cuts(const Value& value, int axis, std::int64_t size, int steps,
                        std::set<std::int64_t>* cuts) const {
  const auto users = users_.find(&value);
  if (users == users_.end() || steps == 0) return;
  for (const Node* user : users->second) {
    if (user == nullptr || user->inputs.empty() || user->outputs.empty() || !user->outputs[0]->type.ranked)
      continue;
    const Value& output = *user->outputs[0];
    const int rank = value.type.rank();
    if (IsElementwise(graph_, *user, user->inputs.size())) {
      Cuts(output, axis + output.type.rank() - rank, size, steps - 1, cuts);
    } else if (user->inputs[0] != &value) {
      continue;
    } else if (user->kind == NodeKind::kReshape) {
      const Shape& to = output.type.dims;
      // The axis as a whole, or cut by a first axis that the ranks do not divide.
      const std::optional<Sharding> same = ReshapeOf(Sharding::Split(axis, size), value.type.dims, to, 1);
      if (!same) continue;
      const std::optional<std::int64_t> first = to[static_cast<std::size_t>(same->axis)].constant();
      if (first == size) {
        Cuts(output, same->axis, size, steps - 1, cuts);
      } else if (first && *first > 1 && *first % ranks_ != 0 && size % *first == 0) {
        for (std::int64_t i = 1; i < *first; ++i) cuts->insert(i * (size / *first));
      }
    } else if (user->kernel == names::kTranspose) {
      const auto perm = IntsAttribute(*user, "perm");
      for (int i = 0; i < rank; ++i) {
        const std::int64_t from = perm ? (*perm)[static_cast<std::size_t>(i)] : rank - 1 - i;
        if (from == axis) Cuts(output, i, size, steps - 1, cuts);
      }
    } else if (user->kernel == names::kSplit && CutAxis(*user, rank) == axis) {
      std::int64_t at = 0;
      for (const Value* part : user->outputs) {
        at += part->type.dims[static_cast<std::size_t>(axis)].constant().value_or(0);
        cuts->insert(at);
      }
    } else if (user->kernel == names::kSlice) {
      const auto starts = IntsAttribute(*user, "starts"), ends = IntsAttribute(*user, "ends");
      const auto axes = IntsAttribute(*user, "axes");
      for (std::size_t i = 0; starts && ends && i < starts->size(); ++i) {
        const std::int64_t of = axes ? (*axes)[i] : static_cast<std::int64_t>(i);
        if ((of < 0 ? of + rank : of) != axis) continue;
        for (const std::int64_t at : {(*starts)[i], (*ends)[i]})
          cuts->insert(std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size));
      }
    }
  }
}

std::vector<std::int64_t> ShardColumns::SegmentsOf(const Value& value, int axis, std::int64_t size) const {
  std::set<std::int64_t> cuts;
  Cuts(value, axis, size, kMostReaders, &cuts);
  cuts.insert(size);
  std::vector<std::int64_t> segments;
  std::int64_t before = 0;
  for (const std::int64_t cut : cuts) {
    if (cut > before) segments.push_back(cut - before);
    before = std::max(before, cut);
  }
  const bool divided = std::all_of(segments.begin(), segments.end(),
                                   [&](std::int64_t segment) { return segment % ranks_ == 0; });
  return divided ? segments : std::vector{size};
}

}  // namespace rewire::compiler

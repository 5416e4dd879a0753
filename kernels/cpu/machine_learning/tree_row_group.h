// SPDX-License-Identifier: Apache-2.0
// A group of rows, and the two ways in which it finds its leaves in a tree: all at once, or by walks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "rewire/kernels/cpu/machine_learning/tree_rows.h"
#include "rewire/kernels/cpu/machine_learning/tree_walks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// The walk of rows through nodes that compare so.
template <bool kForeseen, typename T>
auto WalkOf(const Forest<T>&, TreeCompare how) {
  if (how == TreeCompare::kLeq) return &Forest<T>::template WalkInStep<TreeCompare::kLeq, kForeseen>;
  return how == TreeCompare::kLeqOrNan ? &Forest<T>::template WalkInStep<TreeCompare::kLeqOrNan, kForeseen>
                                       : &Forest<T>::template WalkInStep<TreeCompare::kAny, kForeseen>;
}

// A group of rows and the ways in which their leaves are found.
template <typename T>
class RowGroup {
 public:
  RowGroup(const Forest<T>& forest, TreeCompare how, bool foreseen)
      : forest_(forest),
        how_(how),
        walk_(foreseen ? WalkOf<true>(forest, how) : WalkOf<false>(forest, how)),
        may_be_together_(kFloats && how != TreeCompare::kAny && forest.features <= kMostFeatures &&
                         forest.node_count <= std::numeric_limits<std::int32_t>::max()) {}

  // False if told to stop.
  bool Prepare(const T* rows, std::int64_t count, Pace& pace) {
    rows_ = rows, count_ = count;
    if constexpr (kFloats) {
      if (!may_be_together_) return true;
      const std::int64_t steps = (count + best_.rows_in_step - 1) / best_.rows_in_step;
      most_nodes_ = kNodesForAWalk * count / steps;
      return pace.For(forest_.features, 2 * count, [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          float* column = columns_ + i * kTreeRows;
          for (std::int64_t row = 0; row < count; ++row) {
            column[row] = rows[row * forest_.features + i];
            has_nan_ = has_nan_ || column[row] != column[row];
          }
          std::fill(column + count, column + kTreeRows, 0.0F);
        }
      });
    }
    return true;
  }

  // The leaves of the rows in the tree at `root`, whose nodes end before `end` as far as is known.
  bool Find(std::int64_t root, std::int64_t end, std::int32_t* leaf, Pace& pace) const {
    if constexpr (kFloats) {
      if (may_be_together_ && root >= 0 && end - root <= most_nodes_) {
        if (!pace.Spend(2 * (end - root))) return false;
        const SmallTree tree = {forest_.nodes, forest_.thresholds, static_cast<std::int32_t>(root),
                                static_cast<std::int32_t>(end)};
        if (best_.find_leaves(tree, columns_, has_nan_ && how_ == TreeCompare::kLeqOrNan, count_, leaf))
          return true;
      }
    }
    return (forest_.*walk_)(root, rows_, count_, leaf, pace);
  }

 private:
  static constexpr bool kFloats = std::is_same_v<T, float>;
  static constexpr std::int64_t kMostFeatures = 128;
  // So many nodes are compared for all rows of a step in the time in which one row walks through a tree.
  static constexpr std::int64_t kNodesForAWalk = 4;

  const Forest<T>& forest_;
  TreeCompare how_;
  decltype(WalkOf<true>(std::declval<const Forest<T>&>(), TreeCompare::kAny)) walk_;
  bool may_be_together_, has_nan_ = false;
  const TreeRows& best_ = BestTreeRows();
  const T* rows_ = nullptr;
  std::int64_t count_ = 0, most_nodes_ = 0;
  alignas(64) float columns_[kFloats ? kMostFeatures * kTreeRows : 1];  // as TreeRows takes them
};

}  // namespace rewire::kernel::cpu

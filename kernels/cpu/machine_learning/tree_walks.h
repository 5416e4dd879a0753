// SPDX-License-Identifier: Apache-2.0
// The tensors of a tree ensemble, the walks of rows through them, and the sums of the leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rewire/kernels/contract/machine_learning.h"
#include "rewire/kernels/cpu/machine_learning/tree_rows.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

inline constexpr std::int32_t kNanIsTrue = 8;

template <typename T>
bool GoesToTrue(T value, const TreeNode& node, T threshold) {
  bool goes = value <= threshold;  // as most nodes compare
  if (node.mode == 0) return goes;
  switch (node.mode & 7) {
    case 0:
      break;
    case 1:
      goes = value < threshold;
      break;
    case 2:
      goes = value >= threshold;
      break;
    case 3:
      goes = value > threshold;
      break;
    case 4:
      goes = value == threshold;
      break;
    default:
      goes = value != threshold;
      break;
  }
  return goes || ((node.mode & kNanIsTrue) != 0 && value != value);
}

// How all nodes of a forest compare: by <=, by <= where NaN may be true, or each in its own way.
enum class TreeCompare { kLeq, kLeqOrNan, kAny };

template <TreeCompare kHow, typename T>
bool Goes(T value, const TreeNode& node, T threshold) {
  if (kHow == TreeCompare::kAny) return GoesToTrue(value, node, threshold);
  // Without branches: which way a row goes is not foreseen.
  const bool is_nan = kHow == TreeCompare::kLeqOrNan && value != value;
  return static_cast<bool>(static_cast<int>(value <= threshold) |
                           (static_cast<int>(is_nan) & node.mode >> 3));
}

using names::TreeAggregate;

// The tensors of one call.
template <typename T>
struct Forest {
  const TreeNode* nodes;
  const T* thresholds;
  std::int64_t node_count;
  const std::int32_t* roots;
  std::int64_t trees;
  const std::int32_t* leaves;
  std::int64_t leaf_count;
  const std::int32_t* targets;
  const T* weights;
  std::int64_t weight_count;
  std::int64_t features;
  std::int64_t outputs;
  TreeAggregate aggregate;

  // The leaves of one row in the trees [first, first + count), at most kTreesTogether. The trees are walked
  // in step: a processor then waits for several nodes at once. False if a walk meets a wrong number or is
  // told to stop. Numbers of nodes are looked at before they are used, for all trees of a step at once.
  static constexpr std::int64_t kTreesTogether = 8;
  bool LeavesOf(std::int64_t first, std::int64_t count, const T* row, std::int64_t* leaf, Pace& pace) const {
    std::int64_t wrong = 0;  // below 0 if a child is not there, or in front of its parent
    for (std::int64_t k = 0; k < count; ++k) {
      leaf[k] = roots[first + k];
      wrong |= node_count - 1 - leaf[k];
    }
    for (bool walking = true; walking;) {
      if (wrong < 0 || !pace.Spend(count)) [[unlikely]]
        return false;
      std::int64_t left = -1;  // below 0: all are at leaves
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t at = leaf[k];
        if (at < 0) continue;
        const TreeNode& node = nodes[at];
        const std::int64_t feature = node.feature;
        if (feature < 0 || feature >= features) [[unlikely]]
          return false;
        const std::int64_t next = node.children[GoesToTrue(row[feature], node, thresholds[at]) ? 0 : 1];
        const std::int64_t is_node = ~(next >> 63);  // all bits set, or none
        wrong |= is_node & ((next - at - 1) | (node_count - 1 - next));
        left &= next;
        leaf[k] = next;
      }
      walking = left >= 0;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      leaf[k] = -1 - leaf[k];
      if (leaf[k] >= leaf_count) return false;
    }
    return true;
  }

  // Rows [begin, end) where they are few: tree after tree for each.
  bool RunRows(const T* x, const T* base, T* out, std::int64_t begin, std::int64_t end, Pace& pace) const {
    for (std::int64_t row = begin; row < end; ++row) {
      T* sums = out + row * outputs;
      if (!pace.Fill(sums, outputs, Start())) return false;
      for (std::int64_t tree = 0; tree < trees; tree += kTreesTogether) {
        const std::int64_t count = std::min(kTreesTogether, trees - tree);
        std::int64_t leaf[kTreesTogether];
        if (!LeavesOf(tree, count, x + row * features, leaf, pace)) return false;
        for (std::int64_t k = 0; k < count; ++k) {
          if (!AddLeaf(leaf[k], sums, pace)) return false;
        }
      }
      if (!FinishRow(sums, base, pace)) return false;
    }
    return true;
  }

  // Whether all numbers of nodes are right, so that walks need not look at them, and how they compare. False,
  // too, if told to stop.
  bool HasRightNodes(TreeCompare* how, Pace& pace) const {
    std::int32_t modes = 0;
    std::int64_t right = -1;  // below 0
    // Below 0 if the child is there and behind its parent. Without branches, since there are many.
    const auto is_child = [&](std::int64_t child, std::int64_t parent) {
      const std::int64_t leaf = child >> 63;    // all bits set for a leaf
      const std::int64_t place = child ^ leaf;  // -1 - child for a leaf
      const std::int64_t before = (parent | leaf) - place;
      return before & (place - node_count - ((leaf_count - node_count) & leaf));
    };
    const bool looked_at_nodes = pace.For(node_count, 2, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        const TreeNode& node = nodes[i];
        const std::int64_t feature = node.feature;
        right &=
            ~feature & (feature - features) & is_child(node.children[0], i) & is_child(node.children[1], i);
        modes |= node.mode;
      }
    });
    const bool looked_at_roots = pace.For(trees, 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) right &= is_child(roots[i], -1);
    });
    *how = modes == 0 ? TreeCompare::kLeq : modes == kNanIsTrue ? TreeCompare::kLeqOrNan : TreeCompare::kAny;
    return looked_at_nodes && looked_at_roots && right < 0;
  }

  // The leaves of `count` rows, for nodes that are right and compare in this way. Rows walk in step, some at
  // a time, as trees do in LeavesOf. A CPU learns the ways through few nodes, and foresees them: then there
  // are branches. Through many nodes walks go without, and those that are done stay. False if told to stop.
  template <TreeCompare kHow, bool kForeseen>
  bool WalkInStep(std::int64_t root, const T* rows, std::int64_t count, std::int32_t* leaf,
                  Pace& pace) const {
    constexpr std::int64_t kTogether = kForeseen ? 4 : 8;
    for (std::int64_t first = 0; first < count; first += kTogether) {
      // Rows that are not there walk as the last one does.
      const T* row[kTogether];
      std::int64_t at[kTogether];
      for (std::int64_t k = 0; k < kTogether; ++k) {
        row[k] = rows + std::min(first + k, count - 1) * features;
        at[k] = root;
      }
      for (std::int64_t left = root; left >= 0;) {  // negative: all are at leaves
        if (!pace.Spend(kTogether)) [[unlikely]]
          return false;
        left = -1;
        for (std::int64_t k = 0; k < kTogether; ++k) {
          if (kForeseen && at[k] < 0) continue;
          const std::int64_t done = at[k] >> 63, here = at[k] & ~done;
          const TreeNode& node = nodes[here];
          const bool goes = Goes<kHow>(row[k][node.feature], node, thresholds[here]);
          if (kForeseen) {
            at[k] = goes ? node.children[0] : node.children[1];
          } else {
            const std::int64_t next = node.children[goes ? 0 : 1];
            at[k] = (at[k] & done) | (next & ~done);
          }
          left &= at[k];
        }
      }
      for (std::int64_t k = 0; k < std::min(kTogether, count - first); ++k)
        leaf[first + k] = static_cast<std::int32_t>(-1 - at[k]);
    }
    return true;
  }

  // Adds a leaf's weights to the row of results. False if its numbers are wrong.
  bool AddLeaf(std::int64_t leaf, T* row, Pace& pace) const {
    const std::int64_t begin = leaves[leaf], end = leaves[leaf + 1];
    if (begin < 0 || begin > end || end > weight_count) return false;
    if (end - begin == 1 && aggregate <= TreeAggregate::kAverage && targets[begin] >= 0 &&
        targets[begin] < outputs) {
      row[targets[begin]] += weights[begin];  // as most leaves are
      return true;
    }
    bool right = true;
    const bool done = pace.For(end - begin, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = begin + first; i < begin + last; ++i) {
        const std::int64_t target = targets[i];
        if (target < 0 || target >= outputs) {
          right = false;
          return;
        }
        T& sum = row[target];
        const T weight = weights[i];
        if (aggregate == TreeAggregate::kMin)
          sum = weight < sum ? weight : sum;
        else if (aggregate == TreeAggregate::kMax)
          sum = weight > sum ? weight : sum;
        else
          sum += weight;
      }
    });
    return done && right;
  }

  T Start() const {
    if (aggregate == TreeAggregate::kMin) return std::numeric_limits<T>::infinity();
    if (aggregate == TreeAggregate::kMax) return -std::numeric_limits<T>::infinity();
    return 0;
  }

  // A target that no leaf named is 0.
  T Finish(T sum, T base) const {
    if (aggregate == TreeAggregate::kAverage) return sum / static_cast<T>(trees) + base;
    return (aggregate != TreeAggregate::kSum && sum == Start() ? 0 : sum) + base;
  }

  bool FinishRow(T* sums, const T* base, Pace& pace) const {
    return pace.For(outputs, 2, [&](std::int64_t i, std::int64_t count) {
      for (; i < count; ++i) sums[i] = Finish(sums[i], base[i]);
    });
  }

  // Whether leaf i has one weight, weights[leaves[0] + i], for the only target, to add to a sum. False, too,
  // if told to stop.
  bool HasPlainLeaves(Pace& pace) const {
    const std::int64_t first = leaves[0];
    if (outputs != 1 || aggregate > TreeAggregate::kAverage || first < 0 || first > weight_count - leaf_count)
      return false;
    std::int64_t others = 0;
    return pace.For(leaf_count, 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) others |= (leaves[i + 1] - first - i - 1) | targets[first + i];
    }) && others == 0;
  }

  // Adds the leaves of rows that are in a tree. False if their numbers are wrong.
  bool AddLeaves(const std::int32_t* leaf, std::int64_t count, bool plain, T* out, Pace& pace) const {
    if (plain) {
      for (std::int64_t row = 0; row < count; ++row) out[row] += weights[leaves[0] + leaf[row]];
      return true;
    }
    for (std::int64_t row = 0; row < count; ++row) {
      if (!AddLeaf(leaf[row], out + row * outputs, pace)) return false;
    }
    return true;
  }

  // Rows [begin, end) through nodes that are right, in groups: find(root, end of the tree, leaves, pace)
  // finds the leaves of a group after prepare(its first row, count). A group is in a tree while caches hold
  // it.
  template <typename Prepare, typename Find>
  bool Run(const T* x, const T* base, T* out, std::int64_t begin, std::int64_t end, bool plain, Pace& pace,
           const Prepare& prepare, const Find& find) const {
    for (std::int64_t first = begin; first < end; first += kTreeRows) {
      const std::int64_t count = std::min(end - first, kTreeRows);
      if (!pace.Fill(out + first * outputs, count * outputs, Start())) return false;
      if (!prepare(x + first * features, count, pace)) return false;
      for (std::int64_t tree = 0; tree < trees; ++tree) {
        std::int32_t leaf[kTreeRows];
        if (!pace.Spend(count)) return false;
        // Trees mostly lie one behind the other. Nodes past the end are found to be so.
        const std::int64_t next = tree + 1 < trees ? roots[tree + 1] : node_count;
        if (!find(roots[tree], next > roots[tree] ? next : node_count, leaf, pace)) return false;
        if (!AddLeaves(leaf, count, plain, out + first * outputs, pace)) return false;
      }
      for (std::int64_t row = first; row < first + count; ++row) {
        if (!FinishRow(out + row * outputs, base, pace)) return false;
      }
    }
    return true;
  }
};

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Ensembles of decision trees. The trees are tensors: a file may hold anything in them, so each step of a
// walk is checked. For many rows, all nodes are checked before the first walk instead. A child stands behind
// its parent, so every walk ends.
#include <algorithm>
#include <limits>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// A row of `nodes`. A child below 0 is the leaf -1 - child.
struct TreeNode {
  std::int32_t feature;
  std::int32_t mode;  // 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=; plus 8: NaN goes to when_true
  std::int32_t when_true, when_false;
};
constexpr std::int32_t kNanIsTrue = 8;

template <typename T>
bool GoesToTrue(T value, const TreeNode& node, T threshold) {
  bool goes = false;
  switch (node.mode & 7) {
    case 0:
      goes = value <= threshold;
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
enum class Compare { kLeq, kLeqOrNan, kAny };

template <Compare kHow, typename T>
bool Goes(T value, const TreeNode& node, T threshold) {
  if (kHow == Compare::kAny) return GoesToTrue(value, node, threshold);
  // Without branches: which way a row goes is not foreseen.
  const bool is_nan = kHow == Compare::kLeqOrNan && value != value;
  return static_cast<bool>(static_cast<int>(value <= threshold) |
                           (static_cast<int>(is_nan) & node.mode >> 3));
}

enum class Aggregate { kSum, kAverage, kMin, kMax };

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
  Aggregate aggregate;

  // The leaves of one row in the trees [first, first + count), at most kTreesTogether. The trees are walked
  // in step: a processor then waits for several nodes at once. False if a walk meets a wrong number or is
  // told to stop.
  static constexpr std::int64_t kTreesTogether = 8;
  bool LeavesOf(std::int64_t first, std::int64_t count, const T* row, std::int64_t* leaf, Pace& pace) const {
    std::int64_t least[kTreesTogether] = {};
    for (std::int64_t k = 0; k < count; ++k) leaf[k] = roots[first + k];
    for (bool walking = true; walking;) {
      if (!pace.Spend(count)) [[unlikely]]
        return false;
      walking = false;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t at = leaf[k];
        if (at < 0) continue;
        if (at < least[k] || at >= node_count) [[unlikely]]
          return false;
        const TreeNode& node = nodes[at];
        if (node.feature < 0 || node.feature >= features) [[unlikely]]
          return false;
        least[k] = at + 1;
        leaf[k] = GoesToTrue(row[node.feature], node, thresholds[at]) ? node.when_true : node.when_false;
        walking = true;
      }
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
  bool HasRightNodes(Compare* how, Pace& pace) const {
    std::int32_t modes = 0, right = 1;
    // Without branches, since there are many.
    const auto is_child = [&](std::int64_t child, std::int64_t parent) {
      const bool is_leaf = child < 0;
      const bool after = child > parent;
      return static_cast<int>(is_leaf | after) &
             static_cast<int>((is_leaf ? -1 - child : child) < (is_leaf ? leaf_count : node_count));
    };
    const bool looked_at_nodes = pace.For(node_count, 2, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        const TreeNode& node = nodes[i];
        right &= static_cast<int>(node.feature >= 0) & static_cast<int>(node.feature < features) &
                 is_child(node.when_true, i) & is_child(node.when_false, i);
        modes |= node.mode;
      }
    });
    const bool looked_at_roots = pace.For(trees, 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) right &= is_child(roots[i], -1);
    });
    *how = modes == 0 ? Compare::kLeq : modes == kNanIsTrue ? Compare::kLeqOrNan : Compare::kAny;
    return looked_at_nodes && looked_at_roots && right != 0;
  }

  // The leaves of `count` rows, for nodes that are right and compare in this way. Rows walk in step, some at
  // a time, as trees do in LeavesOf. A CPU learns the ways through few nodes, and foresees them: then there
  // are branches. Through many nodes walks go without, and those that are done stay. False if told to stop.
  template <Compare kHow, bool kForeseen>
  bool WalkInStep(std::int64_t root, const T* rows, std::int64_t count, std::int64_t* leaf,
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
            at[k] = goes ? node.when_true : node.when_false;
          } else {
            const std::int64_t other = node.when_false;
            const std::int64_t next = other ^ ((other ^ node.when_true) & -static_cast<std::int64_t>(goes));
            at[k] = (at[k] & done) | (next & ~done);
          }
          left &= at[k];
        }
      }
      for (std::int64_t k = 0; k < std::min(kTogether, count - first); ++k) leaf[first + k] = -1 - at[k];
    }
    return true;
  }

  // Adds a leaf's weights to the row of results. False if its numbers are wrong.
  bool AddLeaf(std::int64_t leaf, T* row, Pace& pace) const {
    const std::int64_t begin = leaves[leaf], end = leaves[leaf + 1];
    if (begin < 0 || begin > end || end > weight_count) return false;
    if (end - begin == 1 && aggregate <= Aggregate::kAverage && targets[begin] >= 0 &&
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
        if (aggregate == Aggregate::kMin)
          sum = weight < sum ? weight : sum;
        else if (aggregate == Aggregate::kMax)
          sum = weight > sum ? weight : sum;
        else
          sum += weight;
      }
    });
    return done && right;
  }

  T Start() const {
    if (aggregate == Aggregate::kMin) return std::numeric_limits<T>::infinity();
    if (aggregate == Aggregate::kMax) return -std::numeric_limits<T>::infinity();
    return 0;
  }

  // A target that no leaf named is 0.
  T Finish(T sum, T base) const {
    if (aggregate == Aggregate::kAverage) return sum / static_cast<T>(trees) + base;
    return (aggregate != Aggregate::kSum && sum == Start() ? 0 : sum) + base;
  }

  bool FinishRow(T* sums, const T* base, Pace& pace) const {
    return pace.For(outputs, 2, [&](std::int64_t i, std::int64_t count) {
      for (; i < count; ++i) sums[i] = Finish(sums[i], base[i]);
    });
  }

  // Rows [begin, end), whose walks walk(root, rows, count, leaves, pace) makes. A tree is walked by some rows
  // in turn, while caches hold it.
  template <typename Walk>
  bool Run(const T* x, const T* base, T* out, std::int64_t begin, std::int64_t end, Pace& pace,
           const Walk& walk) const {
    constexpr std::int64_t kRows = 32;
    for (std::int64_t first = begin; first < end; first += kRows) {
      const std::int64_t last = std::min(end, first + kRows);
      if (!pace.Fill(out + first * outputs, (last - first) * outputs, Start())) return false;
      for (std::int64_t tree = 0; tree < trees; ++tree) {
        std::int64_t leaf[kRows];
        if (!pace.Spend(last - first)) return false;
        if (!walk(roots[tree], x + first * features, last - first, leaf, pace)) return false;
        for (std::int64_t row = first; row < last; ++row) {
          if (!AddLeaf(leaf[row - first], out + row * outputs, pace)) return false;
        }
      }
      for (std::int64_t row = first; row < last; ++row) {
        if (!FinishRow(out + row * outputs, base, pace)) return false;
      }
    }
    return true;
  }
};

// The walk of rows through nodes that compare so.
template <bool kForeseen, typename T>
auto WalkOf(const Forest<T>&, Compare how) {
  if (how == Compare::kLeq) return &Forest<T>::template WalkInStep<Compare::kLeq, kForeseen>;
  return how == Compare::kLeqOrNan ? &Forest<T>::template WalkInStep<Compare::kLeqOrNan, kForeseen>
                                   : &Forest<T>::template WalkInStep<Compare::kAny, kForeseen>;
}

struct TreeEnsemble {
  static constexpr const char kName[] = "rewire.tree_ensemble";
  Aggregate aggregate = Aggregate::kSum;
  static Status Make(Attributes& attributes, TreeEnsemble* ensemble) {
    ensemble->aggregate =
        static_cast<Aggregate>(attributes.Choice("aggregate", {"SUM", "AVERAGE", "MIN", "MAX"}, 0));
    return Status();
  }

  Status operator()(TensorView x, TensorView nodes, TensorView thresholds, TensorView roots,
                    TensorView leaves, TensorView targets, TensorView weights, TensorView base,
                    TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("nodes", nodes).Dense("thresholds", thresholds).Dense("roots", roots);
    checks.Dense("leaves", leaves).Dense("targets", targets).Dense("weights", weights).Dense("base", base);
    checks.Dense("out", out).Rank("x", x, 2).Rank("nodes", nodes, 2).Rank("roots", roots, 1);
    checks.Rank("leaves", leaves, 1).Rank("weights", weights, 1).Rank("base", base, 1);
    checks.SameDType("thresholds", thresholds, "x", x).SameDType("weights", weights, "x", x);
    checks.SameDType("base", base, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    const std::int64_t of_nodes[] = {nodes.dim(0), 4};
    const std::int64_t of_out[] = {x.dim(0), base.dim(0)};
    Checks shapes;
    shapes.Shape("nodes", nodes, ShapeView(of_nodes, 2));
    shapes.Shape("thresholds", thresholds, ShapeView(of_nodes, 1));
    shapes.Shape("targets", targets, weights.dims()).Shape("out", out, ShapeView(of_out, 2));
    const std::pair<const char*, TensorView> read[] = {
        {"x", x},           {"nodes", nodes},     {"thresholds", thresholds}, {"roots", roots},
        {"leaves", leaves}, {"targets", targets}, {"weights", weights},       {"base", base}};
    for (const auto& [name, tensor] : read) shapes.NoOverlap("out", out, name, tensor);
    if (Status s = shapes.Take(); !s.ok()) return s;
    for (const auto& [name, tensor] : {read[1], read[3], read[4], read[5]})
      if (!tensor.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), name, tensor);
    if (roots.dim(0) < 1 || leaves.dim(0) < 1)
      return ValueError("roots has shape ", roots.dims(), " and leaves ", leaves.dims(),
                        ", expected at least one element each");
    return ForType(Floats(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      const Forest<T> forest{reinterpret_cast<const TreeNode*>(nodes.data<std::int32_t>()),
                             thresholds.data<T>(),
                             nodes.dim(0),
                             roots.data<std::int32_t>(),
                             roots.dim(0),
                             leaves.data<std::int32_t>(),
                             leaves.dim(0) - 1,
                             targets.data<std::int32_t>(),
                             weights.data<T>(),
                             weights.dim(0),
                             x.dim(1),
                             base.dim(0),
                             aggregate};
      bool right = false;
      Compare how = Compare::kAny;
      // Few rows do not meet all nodes, and look at those that they meet.
      if (x.dim(0) >= 4 && Times(x.dim(0), forest.trees, 8) >= forest.node_count) {
        Pace pace;
        right = forest.HasRightNodes(&how, pace);
        if (pace.stopped()) return Stopped();
      }
      constexpr std::int64_t kForeseenNodes = 4096;
      const bool foreseen = forest.node_count <= kForeseenNodes;
      const auto run = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
        const auto rows = [&](const auto& walk) {
          return forest.Run(x.data<T>(), base.data<T>(), out.data<T>(), begin, end, pace,
                            [&](std::int64_t root, const T* first, std::int64_t count, std::int64_t* leaf,
                                Pace& own) { return (forest.*walk)(root, first, count, leaf, own); });
        };
        if (!right) return forest.RunRows(x.data<T>(), base.data<T>(), out.data<T>(), begin, end, pace);
        return foreseen ? rows(WalkOf<true>(forest, how)) : rows(WalkOf<false>(forest, how));
      };
      std::atomic<bool> wrong{false};
      Status status = ParallelFor(x.dim(0), GrainOf(kGrain, 16, forest.trees),
                                  [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                                    if (!run(begin, end, pace) && !pace.stopped())
                                      wrong.store(true, std::memory_order_relaxed);
                                  });
      if (!status.ok() || !wrong.load(std::memory_order_relaxed)) return status;
      return ValueError("a tree names a node, a feature of ", x.dim(1), ", a leaf or a target of ",
                        base.dim(0), " that is not there, or a child in front of its parent");
    });
  }
};

}  // namespace

std::span<const Kernel> TreeEnsembleKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<TreeEnsemble>(
          "x, nodes, thresholds, roots, leaves, targets, weights, base -> out",
          "x, thresholds, weights, base, out f32 f64; nodes, roots, leaves, targets i32",
          "aggregate, SUM, AVERAGE, MIN or MAX = SUM",
          "for each row of x [N, F] and each tree of roots the walk from its root to a leaf. nodes [nodes, "
          "4]: "
          "the feature, how it is compared with the node's threshold (0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, plus "
          "8: NaN is true), the next node if true and if false, which stand behind it; -1 - leaf for a leaf. "
          "Leaf i has the weights leaves[i] to leaves[i + 1] - 1 for their targets. out [N, targets] is the "
          "aggregate of each target's weights plus base [targets]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

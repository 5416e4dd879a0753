// SPDX-License-Identifier: Apache-2.0
//
// Ensembles of decision trees. The trees are tensors: a file may hold anything in them, so each step of a
// walk is checked. For many rows, all nodes are checked before the first walk instead. A child stands behind
// its parent, so every walk ends.
#include <algorithm>
#include <atomic>
#include <limits>

#include "rewire/kernels/contract/machine_learning.h"
#include "rewire/kernels/cpu/machine_learning/tree_row_group.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct TreeEnsemble {
  static constexpr const char* kName = names::kTreeEnsemble;
  TreeAggregate aggregate = TreeAggregate::kSum;
  static Status Make(Attributes& attributes, TreeEnsemble* ensemble) {
    ensemble->aggregate =
        static_cast<TreeAggregate>(attributes.Choice("aggregate", names::kTreeAggregates, 0));
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
      bool right = false, plain = false;
      TreeCompare how = TreeCompare::kAny;
      // Few rows do not meet all nodes, and look at those that they meet.
      if (x.dim(0) >= 4 && Times(x.dim(0), forest.trees, 8) >= forest.node_count) {
        Pace pace;
        right = forest.HasRightNodes(&how, pace);
        plain = right && forest.HasPlainLeaves(pace);
        if (pace.stopped()) return Stopped();
      }
      constexpr std::int64_t kForeseenNodes = 4096;
      const bool foreseen = forest.node_count <= kForeseenNodes;
      const auto run = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
        if (!right) return forest.RunRows(x.data<T>(), base.data<T>(), out.data<T>(), begin, end, pace);
        RowGroup<T> group(forest, how, foreseen);
        return forest.Run(
            x.data<T>(), base.data<T>(), out.data<T>(), begin, end, plain, pace,
            [&](const T* rows, std::int64_t count, Pace& own) { return group.Prepare(rows, count, own); },
            [&](std::int64_t root, std::int64_t past, std::int32_t* leaf, Pace& own) {
              return group.Find(root, past, leaf, own);
            });
      };
      std::atomic<bool> wrong{false};
      // Threads take whole groups: fewer rows are worth going through smaller trees only.
      const std::int64_t rows = x.dim(0), group = rows >= 2 * kTreeRows ? kTreeRows : 1;
      Status status =
          ParallelFor((rows + group - 1) / group, GrainOf(kGrain, 16, forest.trees, group),
                      [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                        if (!run(begin * group, std::min(rows, end * group), pace) && !pace.stopped())
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

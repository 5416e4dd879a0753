// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees: first all walks, then the sums, in the order of the trees.
#include <algorithm>
#include <utility>

#include "rewire/kernels/contract/machine_learning.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// Device code has the numbers of the attribute's values.
static_assert(kTreeMost == static_cast<int>(names::TreeAggregate::kMax));

struct TreeEnsemble {
  static constexpr const char* kName = names::kOnDevice<names::kTreeEnsemble>;
  // So many rows are walked at once that the leaves found take 64 MiB.
  static constexpr std::int64_t kMostWalks = std::int64_t{1} << 24;
  int aggregate = kTreeSum;
  static Status Make(Attributes& attributes, TreeEnsemble* ensemble) {
    ensemble->aggregate = static_cast<int>(attributes.Choice("aggregate", names::kTreeAggregates, kTreeSum));
    return Status();
  }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 1), *roots = sizes.Tensor(3, 1);
    if (x == nullptr || roots == nullptr) return false;
    const std::int64_t trees = std::max<std::int64_t>(1, roots->shape[0]);
    const std::int64_t walks = cpu::Times(std::max<std::int64_t>(1, x->shape[0]), trees);
    sizes.Take(std::min(walks, std::max(kMostWalks, trees)), sizeof(std::int32_t));
    return true;
  }

  Status operator()(TensorView x, TensorView nodes, TensorView thresholds, TensorView roots,
                    TensorView leaves, TensorView targets, TensorView weights, TensorView base,
                    TensorView out) const {
    if (Status s = Check(x, nodes, thresholds, roots, leaves, targets, weights, base, out); !s.ok()) return s;
    if (out.size() == 0) return Status();
    Forest forest{};
    forest.trees = static_cast<int>(roots.dim(0));
    forest.nodes = static_cast<int>(nodes.dim(0));
    forest.leaves = static_cast<int>(leaves.dim(0) - 1);
    forest.weights = static_cast<int>(weights.dim(0));
    forest.features = static_cast<int>(x.dim(1));
    forest.outputs = static_cast<int>(base.dim(0));
    forest.aggregate = aggregate;
    const std::int64_t together = std::clamp<std::int64_t>(kMostWalks / forest.trees, 1, x.dim(0));
    Scratch found;
    if (Status s = found.Make(out, DTypeOf<std::int32_t>(), together * forest.trees); !s.ok()) return s;
    for (std::int64_t row = 0; row < x.dim(0); row += together) {
      const std::int64_t rows = std::min(together, x.dim(0) - row);
      const std::int64_t walks = rows * forest.trees, sums = rows * forest.outputs;
      Call walk(out, Program::kTrees, Form::kF32, "tree_leaves");
      walk.Tensor(x).Tensor(nodes).Tensor(thresholds).Tensor(roots).Tensor(found.view());
      if (Status s = walk.Value(forest).Int(row).Int(walks).Each(walks); !s.ok()) return s;
      Call sum(out, Program::kTrees, Form::kF32, "tree_sums");
      sum.Tensor(found.view()).Tensor(leaves).Tensor(targets).Tensor(weights).Tensor(base).Tensor(out);
      if (Status s = sum.Value(forest).Int(row).Int(sums).Each(sums); !s.ok()) return s;
    }
    return Status();
  }

 private:
  static Status Check(TensorView x, TensorView nodes, TensorView thresholds, TensorView roots,
                      TensorView leaves, TensorView targets, TensorView weights, TensorView base,
                      TensorView out) {
    const std::pair<const char*, TensorView> all[] = {
        {"x", x},         {"thresholds", thresholds}, {"weights", weights}, {"base", base},      {"out", out},
        {"nodes", nodes}, {"roots", roots},           {"leaves", leaves},   {"targets", targets}};
    constexpr std::size_t kFloats = 5;
    DeviceChecks checks;
    for (const auto& [name, tensor] : all) checks.Beside(name, tensor, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    for (std::size_t i = 0; i < std::size(all); ++i) {
      const auto& [name, tensor] = all[i];
      IntegerType type{};
      Status right =
          i < kFloats ? CheckF32(name, tensor) : ElementTypeOf(name, tensor, 1u << kTypeI32, &type);
      if (!right.ok()) return right;
    }
    if (Status s = cpu::CheckRank("x", x, 2); !s.ok()) return s;
    if (Status s = cpu::CheckRank("nodes", nodes, 2); !s.ok()) return s;
    for (const auto& [name, tensor] : {all[2], all[3], all[6], all[7]}) {
      if (Status s = cpu::CheckRank(name, tensor, 1); !s.ok()) return s;
    }
    const std::int64_t of_nodes[] = {nodes.dim(0), 4};
    const std::int64_t of_out[] = {x.dim(0), base.dim(0)};
    DeviceChecks shapes;
    shapes.Shape("nodes", nodes, ShapeView(of_nodes, 2));
    shapes.Shape("thresholds", thresholds, ShapeView(of_nodes, 1));
    shapes.Shape("targets", targets, weights.dims()).Shape("out", out, ShapeView(of_out, 2));
    if (Status s = shapes.Take(); !s.ok()) return s;
    if (roots.dim(0) >= 1 && leaves.dim(0) >= 1) return Status();
    return ValueError("roots has shape ", roots.dims(), " and leaves ", leaves.dims(),
                      ", expected at least one element each");
  }
};

}  // namespace

std::span<const Kernel> TreeEnsembleKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<TreeEnsemble>(
          "x, nodes, thresholds, roots, leaves, targets, weights, base -> out",
          "x, thresholds, weights, base, out f32; nodes, roots, leaves, targets i32",
          "aggregate, SUM, AVERAGE, MIN or MAX = SUM",
          "as rewire.tree_ensemble; a tree that names something that is not there adds nothing",
          REWIRE_KERNEL_DEVICE_WORKSPACE),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

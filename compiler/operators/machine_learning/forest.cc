// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/machine_learning/forest.h"
#include "rewire/kernels/contract/machine_learning.h"

#include <utility>

namespace rewire::compiler {
namespace {

constexpr std::int32_t kNanIsTrue = 8;

template <typename T>
Value* ElementTable(Op& op, DLDataType dtype, const std::vector<T>& elements, Ints shape) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)});
  return op.Constant(std::move(tensor));
}

Value* IndexTable(Op& op, const std::vector<std::int32_t>& elements, std::int64_t columns = 0) {
  const auto count = static_cast<std::int64_t>(elements.size());
  return ElementTable(op, kInt32, elements, columns == 0 ? Ints{count} : Ints{count / columns, columns});
}

Value* NumberTable(Op& op, DLDataType dtype, const std::vector<double>& elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  if (dtype == kFloat64) return ElementTable(op, dtype, elements, {count});
  return ElementTable(op, kFloat32, std::vector<float>(elements.begin(), elements.end()), {count});
}

// The kernel's tensors. A child stands behind its parent. A set of members becomes a chain of comparisons.
struct KernelForest {
  std::vector<std::int32_t> nodes, roots, leaves, targets;
  std::vector<double> thresholds, weights;

  // False if a node is the child of two, or of itself.
  bool AddTrees(const ModelForest& forest) {
    std::vector<bool> seen(forest.nodes.size());
    for (const std::int64_t root : forest.roots) {
      if (root < 0) {
        roots.push_back(static_cast<std::int32_t>(root));
        continue;
      }
      roots.push_back(static_cast<std::int32_t>(thresholds.size()));
      struct Waiting {
        std::int64_t node;
        std::vector<std::size_t> places;  // in `nodes`, that name it
      };
      std::vector<Waiting> waiting = {{root, {}}};
      while (!waiting.empty()) {
        const Waiting next = std::move(waiting.back());
        waiting.pop_back();
        const bool is_leaf = next.node < 0;
        for (const std::size_t place : next.places)
          nodes[place] = static_cast<std::int32_t>(is_leaf ? next.node : Next());
        if (is_leaf) continue;
        const auto at = static_cast<std::size_t>(next.node);
        if (seen[at]) return false;
        seen[at] = true;
        const ModelNode& node = forest.nodes[at];
        Waiting when_true = {node.when_true, {}};
        AddNode(node, &when_true.places);
        waiting.push_back({node.when_false, {nodes.size() - 1}});
        waiting.push_back(std::move(when_true));
      }
    }
    for (const std::vector<LeafWeight>& leaf : forest.leaves) {
      leaves.push_back(static_cast<std::int32_t>(weights.size()));
      for (const LeafWeight& each : leaf) {
        targets.push_back(static_cast<std::int32_t>(each.target));
        weights.push_back(each.weight);
      }
    }
    leaves.push_back(static_cast<std::int32_t>(weights.size()));
    return true;
  }

 private:
  std::int64_t Next() const { return static_cast<std::int64_t>(thresholds.size()); }

  void AddNode(const ModelNode& node, std::vector<std::size_t>* true_places) {
    std::vector<double> values = {node.threshold};
    if (node.mode == kMember) values = node.members;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool first = i == 0;
      const std::int32_t mode =
          (node.mode == kMember ? kEq : node.mode) + (first && node.nan_is_true ? kNanIsTrue : 0);
      const auto after = static_cast<std::int32_t>(Next() + 1);
      for (const std::int32_t number : {static_cast<std::int32_t>(node.feature), mode, 0, after})
        nodes.push_back(number);
      true_places->push_back(nodes.size() - 2);
      thresholds.push_back(values[i]);
    }
  }
};

}  // namespace

Result<Value*> RunForest(Op& op, Value* x, const ModelForest& forest, const std::string& aggregate,
                         const std::vector<double>& base) {
  std::size_t elements = forest.leaves.size();
  for (const ModelNode& node : forest.nodes) elements += 1 + node.members.size();
  for (const auto& leaf : forest.leaves) elements += leaf.size();
  if (elements > std::size_t{1} << 28) return op.Unsupported("the trees have more than {} nodes", 1 << 28);
  if (forest.roots.empty()) return op.Invalid("it has no trees");
  const DLDataType dtype = x->type.dtype;
  KernelForest tables;
  if (!tables.AddTrees(forest)) return op.Invalid("a node of a tree has two parents");
  Shape dims = {x->type.dims[0], DimExpr(static_cast<std::int64_t>(base.size()))};
  return op.Call(names::kTreeEnsemble,
                 {x, IndexTable(op, tables.nodes, 4), NumberTable(op, dtype, tables.thresholds),
                  IndexTable(op, tables.roots), IndexTable(op, tables.leaves), IndexTable(op, tables.targets),
                  NumberTable(op, dtype, tables.weights), NumberTable(op, dtype, base)},
                 {{"aggregate", aggregate}}, TensorOf(dtype, std::move(dims)));
}

}  // namespace rewire::compiler

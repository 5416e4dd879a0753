// SPDX-License-Identifier: Apache-2.0
//
// Runs small operators that do not depend on each other at once: each group of them becomes one call of
// rewire.branches. What the operators write lives during the whole call, so the program may need more memory
// at once. Groups for which it would need much more are left as they are.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/memory/lives.h"
#include "rewire/compiler/passes/parallel/branch_call.h"
#include "rewire/compiler/passes/parallel/branch_groups.h"
#include "rewire/compiler/passes/parallel/node_time.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/branches.h"

namespace rewire::compiler {
namespace {

// By how much the tensors that live at once may grow.
constexpr double kMostGrowth = 1.1;
constexpr std::uint64_t kAnyGrowth = 262144;
// The part of its kernels' time that a call itself may take: that much is lost with one thread.
constexpr double kMostOverhead = 0.02;

// The groups of a graph, numbered through all its blocks.
class Groups {
 public:
  explicit Groups(Graph* graph) : graph_(*graph) {}

  // Makes calls of all groups but those in `left_out`. Returns the bytes that each keeps alive.
  std::map<std::size_t, std::uint64_t> Apply(const std::set<std::size_t>& left_out) {
    std::map<std::size_t, std::uint64_t> bytes;
    std::size_t number = 0;
    const ValueUses uses(graph_);
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      std::size_t done = 0;
      const auto keep = [&](std::size_t end) {
        nodes.insert(nodes.end(), block->nodes.begin() + static_cast<std::ptrdiff_t>(done),
                     block->nodes.begin() + static_cast<std::ptrdiff_t>(end));
        done = end;
      };
      for (const BranchGroup& group :
           FindBranchGroups(*block, [&](const Node& node) { return TimeOf(node); })) {
        keep(group.begin);
        if (left_out.contains(number++)) continue;
        BranchCall call(&graph_, uses, *block, group);
        if (call.overhead() > kMostOverhead * group.time || !graph_.kernels->Check(*call.node())) continue;
        bytes[number - 1] = call.bytes();
        call.Store(&nodes);
        done = group.end;
      }
      keep(block->nodes.size());
      block->nodes = std::move(nodes);
    });
    return bytes;
  }

 private:
  // nullopt for what is in no group.
  std::optional<double> TimeOf(const Node& node) {
    if (node.kind == NodeKind::kReshape) return IsView(node) ? std::optional<double>(0) : std::nullopt;
    const bool plain = node.kind == NodeKind::kKernel && !node.returns && !node.in_place && node.flags == 0 &&
                       std::all_of(node.extents.begin(), node.extents.end(), [](const Node::Extent& extent) {
                         return extent.shape == nullptr && ConstantDims(extent.dims).has_value();
                       });
    if (!plain || !IsPure(graph_, node) || !MayCall(node)) return std::nullopt;
    return TimeOfSmall(graph_, node);
  }
  static bool IsView(const Node& node) {
    const auto dims = ConstantDims(node.extents[0].dims);
    return node.extents[0].shape == nullptr && dims && node.inputs[0]->type.IsTensor() &&
           node.inputs[0]->type.ranked && ConstantDims(node.inputs[0]->type.dims).has_value();
  }
  // Whether rewire.branches has the kernel.
  bool MayCall(const Node& node) {
    const auto [place, added] = callable_.try_emplace(node.kernel, false);
    if (added) {
      std::vector<std::int64_t> arguments(node.inputs.size() + node.outputs.size());
      std::iota(arguments.begin(), arguments.end(), std::int64_t{0});
      CallList calls;
      calls.Append(node, 0, arguments);
      Node trial;
      trial.kernel = names::kBranches;
      trial.attributes =
          calls.ToAttributes(node.inputs.size(), std::vector<std::int64_t>(node.outputs.size()), {});
      place->second = static_cast<bool>(graph_.kernels->Check(trial));
    }
    return place->second;
  }

  Graph& graph_;
  std::map<std::string, bool> callable_;
};

// The most bytes of tensors of known size that live at once.
std::uint64_t BytesAtOnce(Graph* graph) {
  WriteInPlace(graph);
  const Lives lives(*graph);
  std::vector<std::int64_t> change(lives.last_place() + 2);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (const Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || node->returns || node->in_place) continue;
      for (std::size_t i = 0; i < node->outputs.size(); ++i) {
        const Value* value = node->outputs[i];
        const auto dims = ConstantDims(node->extents[i].dims);
        const std::uint64_t bytes = dims ? TensorBytes(value->type.dtype, *dims).value_or(0) : 0;
        change[lives.PlaceOf(node)] += static_cast<std::int64_t>(bytes);
        change[lives.EndOf(value) + 1] -= static_cast<std::int64_t>(bytes);
      }
    }
  });
  std::int64_t now = 0, most = 0;
  for (const std::int64_t by : change) most = std::max(most, now += by);
  return static_cast<std::uint64_t>(most);
}

}  // namespace

void MakeBranches(Graph* graph) {
  if (graph->kernels == nullptr || graph->kernels->Row(names::kBranches) == nullptr) return;
  std::set<std::size_t> left_out;
  std::uint64_t limit = 0;
  for (;;) {
    Graph copy = graph->Copy();
    std::map<std::size_t, std::uint64_t> bytes = Groups(&copy).Apply(left_out);
    if (bytes.empty()) return;
    if (limit == 0) {
      Graph plain = graph->Copy();
      const std::uint64_t before = BytesAtOnce(&plain);
      limit = std::max(static_cast<std::uint64_t>(static_cast<double>(before) * kMostGrowth),
                       before + kAnyGrowth);
    }
    if (BytesAtOnce(&copy) <= limit) break;
    // The largest ones, a quarter of them at once.
    for (std::size_t count = bytes.size() / 4 + 1; count > 0; --count) {
      const auto largest = std::max_element(bytes.begin(), bytes.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      left_out.insert(largest->first);
      bytes.erase(largest);
    }
  }
  Groups(graph).Apply(left_out);
}

}  // namespace rewire::compiler

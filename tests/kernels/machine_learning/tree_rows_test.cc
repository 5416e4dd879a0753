// SPDX-License-Identifier: Apache-2.0
// Trees of many shapes, beside a walk that is written as the kernel's contract says it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "rewire/kernels/cpu/machine_learning/tree_rows.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

constexpr int kFeatures = 5;

// Trees whose thresholds are few numbers, so that rows often equal them.
struct RandomTrees {
  explicit RandomTrees(std::uint32_t seed) : random(seed) {}

  int Below(int end) { return static_cast<int>(random() % static_cast<std::uint32_t>(end)); }
  float Number() { return static_cast<float>(Below(9)) / 4 - 1; }

  // A subtree of so many nodes, true side first. Returns what its parent has as a child.
  std::int32_t Grow(int count, const std::vector<std::int32_t>& modes) {
    if (count == 0) return -1 - leaf_count++;
    const auto at = static_cast<std::int32_t>(thresholds.size());
    const auto mode = modes[static_cast<std::size_t>(Below(static_cast<int>(modes.size())))];
    nodes.insert(nodes.end(), {Below(kFeatures), mode, 0, 0});
    thresholds.push_back(Number());
    const int on_true = Below(3) == 0 ? count - 1 : Below(count);
    const std::int32_t when_true = Grow(on_true, modes), when_false = Grow(count - 1 - on_true, modes);
    nodes[4 * static_cast<std::size_t>(at) + 2] = when_true;
    nodes[4 * static_cast<std::size_t>(at) + 3] = when_false;
    return at;
  }

  // The leaf of a row, by the words of the kernel's contract.
  template <typename T>
  std::int32_t LeafOf(std::int32_t root, const T* row) const {
    std::int32_t at = root;
    while (at >= 0) {
      const std::int32_t* node = nodes.data() + 4 * at;
      const T x = row[node[0]], threshold = static_cast<T>(thresholds[static_cast<std::size_t>(at)]);
      const bool goes[] = {x <= threshold, x<threshold, x >= threshold, x> threshold, x == threshold,
                           x != threshold};
      at = goes[node[1] & 7] || (node[1] >= 8 && std::isnan(x)) ? node[2] : node[3];
    }
    return -1 - at;
  }

  template <typename T>
  std::vector<T> Rows(int count, bool nan) {
    std::vector<T> rows;
    for (int i = 0; i < count * kFeatures; ++i)
      rows.push_back(nan && Below(4) == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(Number()));
    return rows;
  }

  std::mt19937 random;
  std::vector<std::int32_t> nodes, roots;
  std::vector<float> thresholds;
  std::int32_t leaf_count = 0;
};

// Runs the trees on `count` rows with so many targets, of which each leaf names `named`, and compares.
template <typename T>
void Check(RandomTrees& trees, int count, int targets, int named, bool nan) {
  const std::vector<T> rows = trees.Rows<T>(count, nan);
  std::vector<std::int32_t> leaves = {0}, leaf_targets;
  std::vector<T> weights;
  for (std::int32_t leaf = 0; leaf < trees.leaf_count; ++leaf) {
    for (int i = 0; i < named; ++i) {
      leaf_targets.push_back((leaf + i) % targets);
      weights.push_back(static_cast<T>(trees.Below(64)));
    }
    leaves.push_back(static_cast<std::int32_t>(weights.size()));
  }
  std::vector<T> expected(static_cast<std::size_t>(count * targets), T{7});
  for (int row = 0; row < count; ++row) {
    for (const std::int32_t root : trees.roots) {
      const auto leaf = static_cast<std::size_t>(trees.LeafOf(root, rows.data() + row * kFeatures));
      for (auto i = static_cast<std::size_t>(leaves[leaf]); i < static_cast<std::size_t>(leaves[leaf + 1]);
           ++i)
        expected[static_cast<std::size_t>(row * targets + leaf_targets[i])] += weights[i];
    }
  }
  const auto size = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  const std::vector<T> thresholds(trees.thresholds.begin(), trees.thresholds.end());
  auto x = HostTensor::Of<T>({count, kFeatures}, rows), out = HostTensor::Empty<T>({count, targets});
  auto nodes = HostTensor::Of<std::int32_t>({size(thresholds), 4}, trees.nodes);
  auto threshold = HostTensor::Of<T>({size(thresholds)}, thresholds);
  auto root = HostTensor::Of<std::int32_t>({size(trees.roots)}, trees.roots);
  auto leaf = HostTensor::Of<std::int32_t>({size(leaves)}, leaves);
  auto target = HostTensor::Of<std::int32_t>({size(leaf_targets)}, leaf_targets);
  auto weight = HostTensor::Of<T>({size(weights)}, weights);
  auto base = HostTensor::Of<T>({targets}, std::vector<T>(static_cast<std::size_t>(targets), T{7}));
  REQUIRE(Run("rewire.tree_ensemble", {&x, &nodes, &threshold, &root, &leaf, &target, &weight, &base, &out},
              {{"aggregate", "SUM"}}) == "");
  REQUIRE(out.template values<T>() == expected);
}

const std::vector<std::vector<std::int32_t>> kModes = {
    {0}, {8}, {0, 8}, {1}, {0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13}};

TEST_CASE("small, large and one-leaf trees, for any number of rows") {
  for (const std::vector<std::int32_t>& modes : kModes) {
    RandomTrees trees(static_cast<std::uint32_t>(modes.size()) + 5);
    for (const int count : {16, 0, 3, 1, 200, 63, 64, 65, 0, 31, 128, 5})
      trees.roots.push_back(trees.Grow(count, modes));
    for (const int rows : {0, 1, 3, 4, 7, 8, 16, 17, 31, 32, 33, 50, 63, 64, 65, 131}) {
      for (const bool nan : {false, true}) {
        INFO("mode " << modes.back() << ", rows " << rows << ", NaN " << nan);
        Check<float>(trees, rows, 1, 1, nan);
        Check<float>(trees, rows, 4, 3, nan);
        Check<float>(trees, rows, 2, 1, nan);
        Check<double>(trees, rows, 1, 1, nan);
      }
    }
  }
}

TEST_CASE("trees need not lie in their order, and may share nodes") {
  RandomTrees trees(3);
  const std::int32_t first = trees.Grow(12, {0}), second = trees.Grow(9, {0, 8});
  // The third tree is a part of the first one. The fourth one leads into the second, past the next root.
  trees.nodes.insert(trees.nodes.end(), {0, 0, -1, -2});
  trees.thresholds.push_back(0);
  trees.nodes[2] = second;
  trees.roots = {second, first, first + 1, second, first, first};
  for (const bool nan : {false, true}) Check<float>(trees, 40, 1, 1, nan);
}

TEST_CASE("numbers that lead nowhere are an error for rows that go together, too") {
  RandomTrees trees(4);
  trees.roots = {trees.Grow(15, {0})};
  std::vector<std::int32_t> leaves(static_cast<std::size_t>(trees.leaf_count) + 1);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> targets(static_cast<std::size_t>(trees.leaf_count));
  std::int64_t weights = trees.leaf_count;
  bool is_right = false;
  SECTION("none") { is_right = true; }
  SECTION("a feature") { trees.nodes[0] = kFeatures; }
  SECTION("a feature below 0") { trees.nodes[0] = -1; }
  SECTION("a child in front of its parent") { trees.nodes[2] = trees.nodes[3] = 0; }
  SECTION("a node") { trees.nodes[2] = trees.nodes[3] = 15; }
  SECTION("a leaf") { trees.nodes[2] = trees.nodes[3] = -1 - trees.leaf_count; }
  SECTION("a root") { trees.roots[0] = 15; }
  SECTION("a target of every leaf") { std::fill(targets.begin(), targets.end(), 1); }
  SECTION("weights of every leaf") {
    for (std::int32_t& leaf : leaves) leaf += 100;
  }
  SECTION("weights in front of every leaf") {
    for (std::int32_t& leaf : leaves) leaf -= 100;
  }
  const std::vector<float> rows = trees.Rows<float>(40, true);
  auto x = HostTensor::Of<float>({40, kFeatures}, rows), out = HostTensor::Empty<float>({40, 1});
  auto nodes = HostTensor::Of<std::int32_t>({15, 4}, trees.nodes);
  auto threshold = HostTensor::Of<float>({15}, trees.thresholds);
  auto root = HostTensor::Of<std::int32_t>({1}, trees.roots);
  auto leaf = HostTensor::Of<std::int32_t>({std::ssize(leaves)}, leaves);
  auto target = HostTensor::Of<std::int32_t>({std::ssize(targets)}, targets);
  auto weight = HostTensor::Of<float>({weights}, std::vector<float>(static_cast<std::size_t>(weights), 1));
  auto base = HostTensor::Of<float>({1}, {0});
  const std::string failure =
      Run("rewire.tree_ensemble", {&x, &nodes, &threshold, &root, &leaf, &target, &weight, &base, &out},
          {{"aggregate", "SUM"}});
  CHECK((failure.find("a tree names a node, a feature of 5, a leaf or a target of 1 that is not there") !=
         std::string::npos) == !is_right);
  if (is_right) CHECK(out.values<float>() == std::vector<float>(40, 1));
}

TEST_CASE("rows that go together, of every instruction set") {
  RandomTrees trees(6);
  const std::vector<std::int32_t> modes = {0, 8};
  trees.Grow(7, modes);
  const auto begin = static_cast<std::int32_t>(trees.thresholds.size());
  trees.Grow(40, modes);
  const auto end = static_cast<std::int32_t>(trees.thresholds.size());
  std::vector<kernel::cpu::TreeNode> nodes;
  for (std::size_t i = 0; i < trees.nodes.size(); i += 4)
    nodes.push_back({trees.nodes[i], trees.nodes[i + 1], {trees.nodes[i + 2], trees.nodes[i + 3]}});
  const auto rows = trees.Rows<float>(kernel::cpu::kTreeRows, true);
  std::vector<float> columns(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    columns[i % kFeatures * kernel::cpu::kTreeRows + i / kFeatures] = rows[i];
  ForEachTarget([&] {
    const kernel::cpu::TreeRows best = kernel::cpu::ChooseTreeRows();
    for (std::int64_t count = 1; count <= kernel::cpu::kTreeRows; ++count) {
      std::vector<std::int32_t> leaves(kernel::cpu::kTreeRows);
      REQUIRE(best.find_leaves({nodes.data(), trees.thresholds.data(), begin, end}, columns.data(), true,
                               count, leaves.data()));
      for (std::int64_t row = 0; row < count; ++row)
        REQUIRE(leaves[static_cast<std::size_t>(row)] == trees.LeafOf(begin, rows.data() + row * kFeatures));
    }
    // Rows that would have to look at a node at the end are found.
    std::vector<std::int32_t> leaves(kernel::cpu::kTreeRows);
    REQUIRE(!best.find_leaves({nodes.data(), trees.thresholds.data(), begin, begin + 1}, columns.data(), true,
                              kernel::cpu::kTreeRows, leaves.data()));
  });
}

}  // namespace
}  // namespace rewire::test

// SPDX-License-Identifier: Apache-2.0
// Trees, distances of rows, and the probabilities of classes from those of pairs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

// A node compares feature 0 with 1 in one of the ways; leaf 0 has 10 for target 0, leaf 1 has 20 for target 1
// and 3 for target 0.
struct Stump {
  explicit Stump(std::int32_t mode, const std::vector<float>& x)
      : x(HostTensor::Of<float>({std::ssize(x), 1}, x)),
        nodes(HostTensor::Of<std::int32_t>({1, 4}, {0, mode, -1, -2})),
        out(HostTensor::Empty<float>({std::ssize(x), 2})) {}

  std::string Run(const char* aggregate = "SUM") {
    return test::Run("rewire.tree_ensemble",
                     {&x, &nodes, &thresholds, &roots, &leaves, &targets, &weights, &base, &out},
                     {{"aggregate", aggregate}});
  }

  HostTensor x, nodes;
  HostTensor thresholds = HostTensor::Of<float>({1}, {1});
  HostTensor roots = HostTensor::Of<std::int32_t>({1}, {0});
  HostTensor leaves = HostTensor::Of<std::int32_t>({3}, {0, 1, 3});
  HostTensor targets = HostTensor::Of<std::int32_t>({3}, {0, 1, 0});
  HostTensor weights = HostTensor::Of<float>({3}, {10, 20, 3});
  HostTensor base = HostTensor::Of<float>({2}, {100, 200});
  HostTensor out;
};

TEST_CASE("each way to compare, at the threshold and for NaN") {
  // Whether 0, 1, 2 and NaN go to the true side.
  const std::vector<std::vector<bool>> expected = {
      {true, true, false, false},   // <=
      {true, false, false, false},  // <
      {false, true, true, false},   // >=
      {false, false, true, false},  // >
      {false, true, false, false},  // ==
      {true, false, true, true},    // !=
  };
  for (std::int32_t mode = 0; mode < 6; ++mode) {
    for (const bool nan_is_true : {false, true}) {
      Stump stump(mode + (nan_is_true ? 8 : 0), {0, 1, 2, kNaN});
      REQUIRE(stump.Run().empty());
      for (std::size_t row = 0; row < 4; ++row) {
        const bool goes = expected[static_cast<std::size_t>(mode)][row] || (row == 3 && nan_is_true);
        INFO(mode << " " << row);
        CHECK(stump.out.values<float>()[2 * row] == (goes ? 110 : 103));
        CHECK(stump.out.values<float>()[2 * row + 1] == (goes ? 200 : 220));
      }
    }
  }
}

TEST_CASE("trees are added, averaged, or the least or the most counts") {
  const std::pair<const char*, std::vector<float>> cases[] = {
      {"SUM", {100 + 10 + 3, 200 + 20}},
      {"AVERAGE", {100 + 6.5F, 200 + 10}},
      {"MIN", {100 + 3, 200 + 20}},
      {"MAX", {100 + 10, 200 + 20}},
  };
  for (const auto& [aggregate, expected] : cases) {
    Stump stump(0, {0});
    stump.roots = HostTensor::Of<std::int32_t>({2}, {0, -2});  // the second tree is leaf 1
    INFO(aggregate);
    REQUIRE(stump.Run(aggregate).empty());
    CHECK(stump.out.values<float>() == expected);
  }
}

TEST_CASE("a target that no leaf names is its base") {
  for (const char* aggregate : {"MIN", "MAX"}) {
    Stump stump(0, {0});
    REQUIRE(stump.Run(aggregate).empty());
    CHECK(stump.out.values<float>() == std::vector<float>{110, 200});
  }
}

TEST_CASE("more rows than are walked together") {
  std::vector<float> x;
  x.reserve(101);
  for (int i = 0; i < 101; ++i) x.push_back(i % 3 == 0 ? 0 : 5);
  Stump stump(0, x);
  REQUIRE(stump.Run().empty());
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(stump.out.values<float>()[2 * i] == (i % 3 == 0 ? 110 : 103));
}

TEST_CASE("one row walks trees of different depths, more than are walked together") {
  // Tree t is a chain of t % 5 nodes that compare x with 0, 1, ...: x = 2 leaves behind the third. Its leaf k
  // has 2^k. A NaN is on the true side of each second node.
  constexpr int kTrees = 19;
  std::vector<std::int32_t> nodes, roots, leaves = {0}, targets;
  std::vector<float> thresholds, weights;
  float expected = 0, expected_nan = 0;
  for (int t = 0; t < kTrees; ++t) {
    const int depth = t % 5;
    const auto first_leaf = static_cast<std::int32_t>(weights.size());
    roots.push_back(depth == 0 ? -1 - first_leaf : static_cast<std::int32_t>(thresholds.size()));
    for (int k = 0; k < depth; ++k) {
      const auto next = static_cast<std::int32_t>(thresholds.size() + 1);
      nodes.insert(nodes.end(), {0, k % 2 == 0 ? 0 : 8, -1 - (first_leaf + k),
                                 k + 1 < depth ? next : -1 - (first_leaf + depth)});
      thresholds.push_back(static_cast<float>(k));
    }
    for (int k = 0; k <= depth; ++k) {
      weights.push_back(static_cast<float>(1 << k));
      targets.push_back(0);
      leaves.push_back(static_cast<std::int32_t>(weights.size()));
    }
    expected += static_cast<float>(1 << std::min(depth, 2));
    expected_nan += static_cast<float>(1 << std::min(depth, 1));
  }
  const auto count = [](const auto& list) { return std::ssize(list); };
  for (const float value : {2.0F, kNaN}) {
    auto x = HostTensor::Of<float>({1, 1}, {value}), out = HostTensor::Empty<float>({1, 1});
    auto node_rows = HostTensor::Of<std::int32_t>({count(thresholds), 4}, nodes);
    auto threshold = HostTensor::Of<float>({count(thresholds)}, thresholds);
    auto root = HostTensor::Of<std::int32_t>({kTrees}, roots);
    auto leaf = HostTensor::Of<std::int32_t>({count(leaves)}, leaves);
    auto target = HostTensor::Of<std::int32_t>({count(targets)}, targets);
    auto weight = HostTensor::Of<float>({count(weights)}, weights), base = HostTensor::Of<float>({1}, {0});
    CHECK(test::Run("rewire.tree_ensemble",
                    {&x, &node_rows, &threshold, &root, &leaf, &target, &weight, &base, &out},
                    {{"aggregate", "SUM"}}) == "");
    CHECK(out.values<float>() == std::vector<float>{std::isnan(value) ? expected_nan : expected});
  }
}

TEST_CASE("rows that walk together leave the tree at different depths, by any comparison") {
  // Node 0 leads to leaf 0 or node 1, that to leaf 1 or node 2, that to leaf 1 or 0.
  for (const std::int32_t mode : {0, 1}) {
    Stump stump(mode, {0, 2, 3, 4, 1, 2, 3});
    stump.nodes = HostTensor::Of<std::int32_t>({3, 4}, {0, mode, -1, 1, 0, mode, -2, 2, 0, 0, -2, -1});
    stump.thresholds = HostTensor::Of<float>({3}, {1, 2, 3});
    REQUIRE(stump.Run().empty());
    const std::vector<float> first = mode == 0 ? std::vector<float>{110, 103, 103, 110, 110, 103, 103}
                                               : std::vector<float>{110, 103, 103, 110, 103, 103, 103};
    for (std::size_t row = 0; row < first.size(); ++row)
      CHECK(stump.out.values<float>()[2 * row] == first[row]);
  }
}

TEST_CASE("rows that walk together through more nodes than a CPU foresees") {
  // Two trees of twelve levels: node i leads to 2 i + 1 and 2 i + 2, and the lowest ones to a leaf each.
  constexpr std::int32_t kNodes = 4095, kInner = 2047;
  const std::vector<float> x = {-1, -0.3F, 0, 0.1F, 0.4F, 0.45F, 0.7F, 1, kNaN, 0.2F, -0.9F};
  for (const std::int32_t mode : {0, 1, 8}) {
    Stump stump(mode, x);
    std::vector<std::int32_t> nodes;
    std::vector<float> thresholds;
    for (std::int32_t tree = 0; tree < 2; ++tree) {
      for (std::int32_t i = 0; i < kNodes; ++i) {
        const std::int32_t first = i < kInner ? tree * kNodes + 2 * i + 1 : -1 - i % 2;
        nodes.insert(nodes.end(), {0, mode, first, i < kInner ? first + 1 : -2 + i % 2});
        thresholds.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
      }
    }
    const std::int64_t count = std::ssize(thresholds);
    stump.nodes = HostTensor::Of<std::int32_t>({count, 4}, nodes);
    stump.thresholds = HostTensor::Of<float>({count}, thresholds);
    stump.roots = HostTensor::Of<std::int32_t>({2}, {0, kNodes});
    REQUIRE(stump.Run().empty());
    for (std::size_t row = 0; row < x.size(); ++row) {
      std::size_t at = 0;
      std::int32_t next = 0;
      while (next >= 0) {
        at = static_cast<std::size_t>(next);
        const bool below = mode == 1 ? x[row] < thresholds[at] : x[row] <= thresholds[at];
        next = nodes[4 * at + (below || (mode == 8 && std::isnan(x[row])) ? 2 : 3)];
      }
      INFO("mode " << mode << ", row " << row);
      CHECK(stump.out.values<float>()[2 * row] == (next == -1 ? 120 : 106));  // by both trees
    }
  }
}

TEST_CASE("numbers that lead nowhere are an error") {
  const char* message =
      "ValueError: rewire.tree_ensemble: a tree names a node, a feature of 1, a leaf or a target of 2 that "
      "is not there, or a "
      "child in "
      "front of its parent";
  Stump stump(0, {0});
  SECTION("a feature") { stump.nodes = HostTensor::Of<std::int32_t>({1, 4}, {1, 0, -1, -2}); }
  SECTION("a feature below 0") { stump.nodes = HostTensor::Of<std::int32_t>({1, 4}, {-1, 0, -1, -2}); }
  SECTION("a node") { stump.nodes = HostTensor::Of<std::int32_t>({1, 4}, {0, 0, 1, -2}); }
  SECTION("itself") { stump.nodes = HostTensor::Of<std::int32_t>({1, 4}, {0, 0, 0, -2}); }
  SECTION("a leaf") { stump.nodes = HostTensor::Of<std::int32_t>({1, 4}, {0, 0, -3, -2}); }
  SECTION("a root") { stump.roots = HostTensor::Of<std::int32_t>({1}, {1}); }
  SECTION("a target") { stump.targets = HostTensor::Of<std::int32_t>({3}, {2, 1, 0}); }
  SECTION("a target below 0") { stump.targets = HostTensor::Of<std::int32_t>({3}, {-1, 1, 0}); }
  SECTION("too many weights") { stump.leaves = HostTensor::Of<std::int32_t>({3}, {0, 4, 3}); }
  SECTION("weights in front") { stump.leaves = HostTensor::Of<std::int32_t>({3}, {-1, 1, 3}); }
  SECTION("weights that end before they begin") {
    stump.leaves = HostTensor::Of<std::int32_t>({3}, {1, 0, 3});
  }
  CHECK(stump.Run() == message);
}

TEST_CASE("squared distances") {
  HostTensor x = HostTensor::Random({5, 7}, 1), y = HostTensor::Random({3, 7}, 2);
  HostTensor out = HostTensor::Empty<float>({5, 3});
  REQUIRE(Run("rewire.squared_distance", {&x, &y, &out}).empty());
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 7; ++k) {
        const double apart = static_cast<double>(x.values<float>()[i * 7 + k]) -
                             static_cast<double>(y.values<float>()[j * 7 + k]);
        sum += apart * apart;
      }
      CHECK(out.values<float>()[i * 3 + j] == Approx(sum));
    }
  }
  HostTensor narrow = HostTensor::Random({3, 6}, 2);
  CHECK(Run("rewire.squared_distance", {&x, &narrow, &out}).find("expected [3, 7]") != std::string::npos);
}

TEST_CASE("classes from pairs") {
  // Pairs that agree: p[i] / (p[i] + p[j]) of known probabilities, which are found again.
  const std::vector<double> p = {0.5, 0.2, 0.2, 0.1};
  std::vector<float> pairs;
  for (std::size_t i = 0; i < p.size(); ++i) {
    for (std::size_t j = i + 1; j < p.size(); ++j) pairs.push_back(static_cast<float>(p[i] / (p[i] + p[j])));
  }
  HostTensor x = HostTensor::Of<float>({1, 6}, pairs);
  HostTensor out = HostTensor::Empty<float>({1, 4});
  REQUIRE(Run("rewire.pairwise_coupling", {&x, &out}).empty());
  for (std::size_t i = 0; i < p.size(); ++i)
    CHECK(static_cast<double>(out.values<float>()[i]) == Approx(p[i]).margin(0.01));
  HostTensor three = HostTensor::Empty<float>({1, 3});
  CHECK(Run("rewire.pairwise_coupling", {&x, &three}).find("a column of x for each pair") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test

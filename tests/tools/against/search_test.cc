// SPDX-License-Identifier: Apache-2.0
// The search of vm-run --against, on graphs in which a test says what differs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rewire/tools/against/search.h"

namespace rewire::tools {
namespace {

std::string Name(std::size_t node) { return "v" + std::to_string(node); }

Comparison Compared(bool equal) {
  Comparison comparison;
  comparison.elements = 1;
  comparison.different = equal ? 0 : 1;
  return comparison;
}

// Nodes that read one or two of the last few values; every one also reads a constant.
OnnxGraph RandomGraph(std::mt19937* random, std::size_t nodes) {
  OnnxGraph graph;
  graph.inputs = {"x"};
  graph.constants = {"w"};
  for (std::size_t i = 0; i < nodes; ++i) {
    OnnxGraph::Node node{"node" + std::to_string(i), "Add", {"w"}, {Name(i)}};
    node.inputs.push_back(i == 0 ? "x" : Name(i - 1));
    if (i > 3 && (*random)() % 3 == 0) node.inputs.push_back(Name(i - 2 - (*random)() % 3));
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {Name(nodes - 1)};
  return graph;
}

struct Planted {
  const OnnxGraph& graph;
  std::set<std::string> differing;
  std::size_t compared = 0;

  // The node is wrong, and so is all that is made of it, except where `hides` says so.
  Planted(const OnnxGraph& of, std::size_t wrong, const std::set<std::size_t>& hides) : graph(of) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const std::vector<std::string>& inputs = graph.nodes[i].inputs;
      const bool reads = std::any_of(inputs.begin(), inputs.end(),
                                     [&](const std::string& input) { return differing.contains(input); });
      if (i == wrong || (reads && !hides.contains(i))) differing.insert(Name(i));
    }
  }
  Result<std::map<std::string, Comparison>> Compare(const std::vector<std::string>& names) {
    std::map<std::string, Comparison> result;
    for (const std::string& name : names) result[name] = Compared(!differing.contains(name));
    compared += names.size();
    return result;
  }
};

TEST_CASE("the search finds a wrong node, wherever it is, with few comparisons") {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    const OnnxGraph graph = RandomGraph(&random, 500);
    const std::size_t wrong = random() % 500;
    Planted planted(graph, wrong, {});
    std::map<std::string, std::uint64_t> comparable;
    // Two thirds of the values were fused away.
    const bool fused = turn % 2 == 1;
    for (std::size_t i = 0; i < 500; ++i) {
      if (!fused || i % 3 == 0) comparable[Name(i)] = 64;
    }
    DifferenceSearch search(graph, comparable,
                            [&](const std::vector<std::string>& names) { return planted.Compare(names); });
    const Result<FirstDifference> first = search.Find({{Name(499), Compared(false)}});
    REQUIRE(first.has_value());
    INFO("node " << wrong << " of graph " << turn);
    CHECK(std::find(first->nodes.begin(), first->nodes.end(), wrong) != first->nodes.end());
    if (!fused) {
      CHECK(first->nodes == std::vector<std::size_t>{wrong});
      CHECK(first->value == Name(wrong));
    }
    for (const FirstDifference::Input& input : first->inputs)
      CHECK_FALSE(planted.differing.contains(input.name));
    CHECK(search.rounds() <= 6);
    CHECK(planted.compared <= 90);
  }
}

TEST_CASE("an equal value does not hide what goes past it") {
  // v1 is wrong. v2 takes no notice of it, v3 does.
  const OnnxGraph graph = {{{"a", "Add", {"x"}, {"v0"}},
                            {"b", "Add", {"v0", "w"}, {"v1"}},
                            {"c", "Mul", {"v1", "zero"}, {"v2"}},
                            {"d", "Add", {"v1", "v2"}, {"v3"}}},
                           {"x"},
                           {"w", "zero"},
                           {"v3"}};
  Planted planted(graph, 1, {2});
  DifferenceSearch search(graph, {{"v0", 4}, {"v1", 4}, {"v2", 4}},
                          [&](const std::vector<std::string>& names) { return planted.Compare(names); });
  const Result<FirstDifference> first = search.Find({{"v3", Compared(false)}});
  REQUIRE(first.has_value());
  CHECK(first->value == "v1");
  CHECK(first->nodes == std::vector<std::size_t>{1});
  REQUIRE(first->inputs.size() == 2);
  CHECK(first->inputs[0].name == "v0");
  CHECK(first->inputs[0].state == InputState::kEqual);
  CHECK(first->inputs[1].name == "w");
  CHECK(first->inputs[1].state == InputState::kConstant);
}

TEST_CASE("values that are too large for one round are compared one by one") {
  std::mt19937 random(3);
  const OnnxGraph graph = RandomGraph(&random, 64);
  Planted planted(graph, 20, {});
  std::map<std::string, std::uint64_t> comparable;
  for (std::size_t i = 0; i < 64; ++i) comparable[Name(i)] = std::uint64_t{1} << 30;
  std::size_t most = 0;
  DifferenceSearch search(graph, comparable, [&](const std::vector<std::string>& names) {
    most = std::max(most, names.size());
    return planted.Compare(names);
  });
  const Result<FirstDifference> first = search.Find({{Name(63), Compared(false)}});
  REQUIRE(first.has_value());
  CHECK(first->value == Name(20));
  CHECK(most == 1);
  CHECK(search.rounds() <= 12);
}

}  // namespace
}  // namespace rewire::tools

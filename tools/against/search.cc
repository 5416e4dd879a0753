// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/against/search.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rewire::tools {
namespace {

constexpr std::size_t kMostInOneRound = 15;
constexpr std::uint64_t kMostBytesInOneRound = std::uint64_t{256} << 20;

}  // namespace

DifferenceSearch::DifferenceSearch(const OnnxGraph& graph, std::map<std::string, std::uint64_t> comparable,
                                   Compare compare)
    : graph_(graph), comparable_(std::move(comparable)), compare_(std::move(compare)) {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (const std::string& output : graph_.nodes[i].outputs) makers_.emplace(output, i);
  }
}

std::size_t DifferenceSearch::MakerOf(const std::string& value) const {
  const auto found = makers_.find(value);
  return found == makers_.end() ? graph_.nodes.size() : found->second;
}

std::vector<std::size_t> DifferenceSearch::Between(const std::string& value,
                                                   std::vector<std::string>* in_question) const {
  std::set<std::size_t> between;
  std::vector<std::size_t> open;
  const auto visit = [&](std::size_t node) {
    if (node < graph_.nodes.size() && between.insert(node).second) open.push_back(node);
  };
  std::set<std::string> seen;
  visit(MakerOf(value));
  while (!open.empty()) {
    const OnnxGraph::Node& node = graph_.nodes[open.back()];
    open.pop_back();
    for (const std::string& input : node.inputs) {
      if (known_.contains(input) || !seen.insert(input).second) continue;
      if (comparable_.contains(input) && makers_.contains(input)) in_question->push_back(input);
      visit(MakerOf(input));
    }
  }
  return {between.begin(), between.end()};
}

std::string DifferenceSearch::EarliestDifference() const {
  std::string earliest;
  for (const auto& [name, comparison] : known_) {
    if (!comparison.equal() && (earliest.empty() || MakerOf(name) < MakerOf(earliest))) earliest = name;
  }
  return earliest;
}

std::vector<std::string> DifferenceSearch::Chosen(const std::vector<std::string>& in_question) const {
  std::vector<std::string> sorted = in_question;
  std::sort(sorted.begin(), sorted.end(), [this](const std::string& a, const std::string& b) {
    return std::pair(MakerOf(a), a) < std::pair(MakerOf(b), b);
  });
  const std::size_t count = std::min(kMostInOneRound, sorted.size());
  std::vector<std::string> chosen;
  std::uint64_t bytes = 0;
  // From the middle outwards: if one value alone fills a round, it halves those in question.
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t step = (i + 1) / 2;
    const std::size_t at = i % 2 == 0 ? count / 2 + step : count / 2 - step;
    if (at >= count) continue;
    const std::string& name = sorted[(2 * at + 1) * sorted.size() / (2 * count)];
    bytes += comparable_.at(name);
    if (!chosen.empty() && bytes > kMostBytesInOneRound) break;
    chosen.push_back(name);
  }
  return chosen;
}

Result<FirstDifference> DifferenceSearch::Find(const std::map<std::string, Comparison>& outputs) {
  known_ = outputs;
  for (;;) {
    const std::string value = EarliestDifference();
    std::vector<std::string> in_question;
    std::vector<std::size_t> nodes = Between(value, &in_question);
    if (in_question.empty()) return Describe(value, std::move(nodes));
    const std::vector<std::string> chosen = Chosen(in_question);
    ++rounds_;
    const Result<std::map<std::string, Comparison>> compared = compare_(chosen);
    if (!compared) return Forward(compared);
    for (const std::string& name : chosen) {
      const auto found = compared->find(name);
      if (found == compared->end()) {
        comparable_.erase(name);
      } else {
        known_.emplace(name, found->second);
      }
    }
  }
}

FirstDifference DifferenceSearch::Describe(const std::string& value, std::vector<std::size_t> nodes) const {
  FirstDifference first;
  first.value = value;
  first.comparison = known_.at(value);
  first.nodes = std::move(nodes);
  const std::set<std::string> constants(graph_.constants.begin(), graph_.constants.end());
  std::set<std::string> seen;
  for (const std::size_t node : first.nodes) {
    for (const std::string& input : graph_.nodes[node].inputs) {
      if (!seen.insert(input).second) continue;
      const auto known = known_.find(input);
      if (known != known_.end()) {
        first.inputs.push_back({input, InputState::kEqual, known->second});
      } else if (!makers_.contains(input)) {
        first.inputs.push_back(
            {input, constants.contains(input) ? InputState::kConstant : InputState::kModelInput, {}});
      }
    }
  }
  return first;
}

}  // namespace rewire::tools

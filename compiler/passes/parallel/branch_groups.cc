// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/parallel/branch_groups.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace rewire::compiler {
namespace {

constexpr std::size_t kMostNodes = 64;  // of a group
constexpr std::size_t kMostArguments = 160;
constexpr std::size_t kMostBranches = 8;
// The costs of a group: threads answer each other, and results go from one's cache to the other's. And for
// each node, what weighs against adding it.
constexpr double kNanosecondsOfGroup = 4000;
constexpr double kNanosecondsOfNode = 20;
// The least that a group must save, as a part of its time on one thread. It may save less than estimated.
constexpr double kLeastPart = 0.25;
// A thread that sleeps needs so long to wake up. In less time it is no help.
constexpr double kLeastTime = 50000;

// Nodes [begin, end) of a block, and which of them hang together.
class Stretch {
 public:
  Stretch(const Block& block, const std::vector<std::optional<double>>& times,
          const std::unordered_map<const Node*, std::size_t>& index, std::size_t begin)
      : block_(block), times_(times), index_(index), begin_(begin) {}

  // Adds the next node. False if there is none, or none that may be added.
  bool Extend() {
    const std::size_t at = begin_ + root_.size();
    if (at >= block_.nodes.size() || !times_[at] || root_.size() == kMostNodes) return false;
    const Node& node = *block_.nodes[at];
    arguments_ += node.inputs.size() + node.outputs.size();
    if (arguments_ > kMostArguments) return false;
    root_.push_back(root_.size());
    sum_.push_back(*times_[at]);
    all_ += *times_[at];
    for (const Value* input : node.inputs) {
      if (input == nullptr || input->producer == nullptr) continue;
      const auto maker = index_.find(input->producer);
      if (maker == index_.end() || maker->second < begin_ || maker->second >= at) continue;
      const std::size_t a = RootOf(maker->second - begin_), b = RootOf(at - begin_);
      if (a == b) continue;
      root_[b] = a;
      sum_[a] += sum_[b];
    }
    return true;
  }

  std::size_t end() const { return begin_ + root_.size(); }

  // Nanoseconds that threads save; 0 if that is too little on two. More branches may serve more threads,
  // which decides between groups that serve two alike.
  double Saved() const {
    const auto largest = Largest();
    const double costs = kNanosecondsOfGroup + kNanosecondsOfNode * static_cast<double>(root_.size());
    const double two = TimeOn<2>(largest) + costs, four = TimeOn<4>(largest) + costs;
    if (all_ < kLeastTime || all_ - two < kLeastPart * all_) return 0;
    return all_ - 0.75 * two - 0.25 * four;
  }

  // Nodes that hang together are in one branch; others are, too, if there are too many of them. The caller's
  // thread takes branches from the front and others from the back. So two threads begin with the two longest.
  BranchGroup Group() const {
    BranchGroup group{begin_, end(), std::vector<std::size_t>(root_.size()), 0, all_};
    const std::vector<std::pair<double, std::size_t>> largest = Largest();
    std::array<double, kMostBranches> time{};
    const std::size_t count = std::min(largest.size(), kMostBranches);
    std::unordered_map<std::size_t, std::size_t> branch;
    for (const auto& [of_root, root] : largest) {
      const auto place = std::min_element(time.begin(), time.begin() + static_cast<std::ptrdiff_t>(count));
      *place += of_root;
      branch[root] = static_cast<std::size_t>(place - time.begin());
    }
    const auto order = [&](std::size_t at) { return at % 2 == 0 ? at / 2 : count - 1 - at / 2; };
    for (std::size_t i = 0; i < root_.size(); ++i) group.branch[i] = order(branch[RootOf(i)]);
    group.branches = count;
    return group;
  }

 private:
  // When so many threads are done that take one set after the other.
  template <std::size_t kThreads>
  static double TimeOn(const std::vector<std::pair<double, std::size_t>>& largest) {
    std::array<double, kThreads> threads{};
    for (const auto& [time, root] : largest) *std::min_element(threads.begin(), threads.end()) += time;
    return *std::max_element(threads.begin(), threads.end());
  }
  std::size_t RootOf(std::size_t node) const {
    while (root_[node] != node) node = root_[node];
    return node;
  }
  // The time of each set of nodes that hang together, and its root; the longest first.
  std::vector<std::pair<double, std::size_t>> Largest() const {
    std::vector<std::pair<double, std::size_t>> sets;
    for (std::size_t i = 0; i < root_.size(); ++i) {
      if (root_[i] == i) sets.emplace_back(sum_[i], i);
    }
    std::stable_sort(sets.begin(), sets.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    return sets;
  }

  const Block& block_;
  const std::vector<std::optional<double>>& times_;
  const std::unordered_map<const Node*, std::size_t>& index_;
  std::size_t begin_;
  std::size_t arguments_ = 0;
  std::vector<std::size_t> root_;  // of each node, towards the root
  std::vector<double> sum_;        // of roots: the time of their nodes
  double all_ = 0;
};

}  // namespace

std::vector<BranchGroup> FindBranchGroups(const Block& block,
                                          const std::function<std::optional<double>(const Node&)>& time) {
  const std::size_t count = block.nodes.size();
  std::vector<std::optional<double>> times(count);
  std::unordered_map<const Node*, std::size_t> index;
  for (std::size_t i = 0; i < count; ++i) {
    times[i] = time(*block.nodes[i]);
    index[block.nodes[i]] = i;
  }
  // The most that the nodes from `i` on can save, and where the group ends that begins there, if one does.
  std::vector<double> saved(count + 1);
  std::vector<std::size_t> end(count);
  for (std::size_t i = count; i-- > 0;) {
    saved[i] = saved[i + 1];
    Stretch stretch(block, times, index, i);
    while (stretch.Extend()) {
      const double by_this = stretch.Saved();
      if (by_this == 0 || by_this + saved[stretch.end()] <= saved[i]) continue;
      saved[i] = by_this + saved[stretch.end()];
      end[i] = stretch.end();
    }
  }
  std::vector<BranchGroup> groups;
  for (std::size_t i = 0; i < count;) {
    if (end[i] == 0 || saved[i] == saved[i + 1]) {
      ++i;
      continue;
    }
    Stretch stretch(block, times, index, i);
    while (stretch.end() < end[i]) stretch.Extend();
    groups.push_back(stretch.Group());
    i = end[i];
  }
  return groups;
}

}  // namespace rewire::compiler

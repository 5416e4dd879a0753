// SPDX-License-Identifier: Apache-2.0
// The order of the simulated CUDA driver's work: vector clocks over timelines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rewire::simulated_cuda {

// A place on a timeline: the work with this number, counted from 1. Number 0 is the beginning, which all come
// after.
struct Moment {
  std::uint32_t timeline = 0;
  std::uint64_t number = 0;
};

// For each timeline, the last work that is known to come before.
class Clock {
 public:
  bool Covers(Moment moment) const { return At(moment.timeline) >= moment.number; }
  bool Covers(const Clock& other) const {
    for (std::uint32_t i = 0; i < other.numbers_.size(); ++i)
      if (At(i) < other.numbers_[i]) return false;
    return true;
  }
  std::uint64_t At(std::uint32_t timeline) const {
    return timeline < numbers_.size() ? numbers_[timeline] : 0;
  }
  // The last work on each timeline that this clock knows of and the other does not.
  std::vector<Moment> Beyond(const Clock& other) const {
    std::vector<Moment> moments;
    for (std::uint32_t i = 0; i < numbers_.size(); ++i)
      if (numbers_[i] > other.At(i)) moments.push_back({i, numbers_[i]});
    return moments;
  }
  void Add(Moment moment) {
    if (numbers_.size() <= moment.timeline) numbers_.resize(moment.timeline + 1);
    numbers_[moment.timeline] = std::max(numbers_[moment.timeline], moment.number);
  }
  void Join(const Clock& other) {
    if (numbers_.size() < other.numbers_.size()) numbers_.resize(other.numbers_.size());
    for (std::size_t i = 0; i < other.numbers_.size(); ++i)
      numbers_[i] = std::max(numbers_[i], other.numbers_[i]);
  }

 private:
  std::vector<std::uint64_t> numbers_;
};

}  // namespace rewire::simulated_cuda

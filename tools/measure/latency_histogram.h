// SPDX-License-Identifier: Apache-2.0
// Counts latencies in buckets whose width grows with the value, so that any number of them fits into fixed
// memory.
#pragma once

#include <cstdint>
#include <vector>

namespace rewire::tools {

// A percentile in thousandths of a percent, so that ranks are exact: 50,000 is the median, 99,900 is p99.9.
struct Percentile {
  std::uint32_t thousandths = 0;
};

// A log-linear histogram with the buckets of HdrHistogram at three significant digits. Values below 2,048
// have a bucket each. Above, each power of two is divided into 1,024 buckets, so a bucket is at most 0.1 %
// wide.
//
// Values are nanoseconds. Values above kHighest, more than an hour, are counted as kHighest.
class LatencyHistogram {
 public:
  static constexpr std::uint64_t kHighest = (std::uint64_t{1} << 42) - 1;

  LatencyHistogram();
  void Record(std::uint64_t value, std::uint64_t times = 1);
  void Add(const LatencyHistogram& other);

  std::uint64_t count() const { return count_; }
  // All zero if nothing was recorded. Minimum, maximum and mean are exact.
  std::uint64_t minimum() const { return count_ == 0 ? 0 : minimum_; }
  std::uint64_t maximum() const { return maximum_; }
  double mean() const;
  // The largest value of the first bucket at which at least that share of all values has been counted, but no
  // more than the maximum. Zero if nothing was recorded.
  std::uint64_t At(Percentile percentile) const;

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0, minimum_ = kHighest, maximum_ = 0;
  double sum_ = 0;
};

}  // namespace rewire::tools

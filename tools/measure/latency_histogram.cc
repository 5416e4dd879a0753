// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rewire::tools {
namespace {

// A bucket is named by the 11 leading bits of its values, of which the first is set, and by how many bits
// follow. Values below 2^11 have no bits that follow.
constexpr unsigned kLeadingBits = 11;
constexpr std::uint64_t kHalf = std::uint64_t{1} << (kLeadingBits - 1);

unsigned BitsBehind(std::uint64_t value) {
  return static_cast<unsigned>(std::max<int>(0, std::bit_width(value) - static_cast<int>(kLeadingBits)));
}

std::size_t BucketOf(std::uint64_t value) {
  const unsigned behind = BitsBehind(value);
  return behind * kHalf + (value >> behind);
}

// The largest value of the bucket. The inverse of BucketOf: two halves have no bits behind, and each later
// half one more.
std::uint64_t LargestIn(std::size_t bucket) {
  const std::uint64_t behind = bucket < 2 * kHalf ? 0 : bucket / kHalf - 1;
  const std::uint64_t leading = bucket - behind * kHalf;
  return ((leading + 1) << behind) - 1;
}

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(BucketOf(kHighest) + 1) {}

void LatencyHistogram::Record(std::uint64_t value, std::uint64_t times) {
  if (times == 0) return;
  value = std::min(value, kHighest);
  counts_[BucketOf(value)] += times;
  count_ += times;
  minimum_ = std::min(minimum_, value);
  maximum_ = std::max(maximum_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  minimum_ = std::min(minimum_, other.minimum_);
  maximum_ = std::max(maximum_, other.maximum_);
  sum_ += other.sum_;
}

double LatencyHistogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

std::uint64_t LatencyHistogram::At(Percentile percentile) const {
  if (count_ == 0) return 0;
  constexpr std::uint64_t kWhole = 100'000;
  // count * share / whole, rounded up, without an overflow.
  const std::uint64_t share = percentile.thousandths;
  const std::uint64_t rank = count_ / kWhole * share + (count_ % kWhole * share + kWhole - 1) / kWhole;
  const std::uint64_t wanted = std::max<std::uint64_t>(1, rank);
  std::uint64_t counted = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    counted += counts_[bucket];
    if (counted >= wanted) return std::min(LargestIn(bucket), maximum_);
  }
  return maximum_;
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/latency_histogram.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

namespace rewire::tools {
namespace {

// Values of every size that a latency has, from nanoseconds to an hour.
std::vector<std::uint64_t> Values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random() >> (22 + random() % 42));
  return values;
}

// The smallest value that at least the share of all values do not exceed.
std::uint64_t Exact(std::vector<std::uint64_t> values, std::uint64_t thousandths) {
  std::sort(values.begin(), values.end());
  const std::uint64_t rank = (values.size() * thousandths + 99'999) / 100'000;
  return values[std::max<std::uint64_t>(rank, 1) - 1];
}

constexpr std::uint32_t kShares[] = {0, 1, 1'000, 10'000, 50'000, 90'000, 99'000, 99'900, 99'990, 100'000};

TEST_CASE("a percentile is at most 0.1 % above the value of its rank, and never below") {
  for (const std::size_t count : {1, 2, 3, 10, 999, 20'000}) {
    const std::vector<std::uint64_t> values = Values(count, count);
    LatencyHistogram histogram;
    for (const std::uint64_t value : values) histogram.Record(value);
    CHECK(histogram.count() == count);
    CHECK(histogram.minimum() == *std::min_element(values.begin(), values.end()));
    CHECK(histogram.maximum() == *std::max_element(values.begin(), values.end()));
    for (const std::uint32_t share : kShares) {
      const std::uint64_t exact = Exact(values, share);
      INFO(count << " values, " << share);
      CHECK(histogram.At({share}) >= exact);
      CHECK(histogram.At({share}) <= exact + exact / 1024);
    }
    CHECK(histogram.At({100'000}) == histogram.maximum());
  }
}

TEST_CASE("small values are counted exactly, and every power of two has its buckets") {
  for (unsigned bits = 0; bits < 42; ++bits) {
    for (const std::uint64_t value : {std::uint64_t{1} << bits, (std::uint64_t{2} << bits) - 1}) {
      // The larger one keeps the maximum from hiding the bucket's end.
      LatencyHistogram histogram;
      histogram.Record(value);
      histogram.Record(LatencyHistogram::kHighest);
      INFO(value);
      const std::uint64_t found = histogram.At({50'000});
      if (value < 2048) CHECK(found == value);
      CHECK(found >= value);
      CHECK(found - value < (value < 2048 ? 1 : (std::uint64_t{1} << bits) / 1024));
    }
  }
}

TEST_CASE("histograms add up, whatever was recorded where") {
  LatencyHistogram whole, even, odd;
  const std::vector<std::uint64_t> values = Values(5'000, 7);
  for (std::size_t i = 0; i < values.size(); ++i) {
    whole.Record(values[i]);
    (i % 2 == 0 ? even : odd).Record(values[i]);
  }
  even.Add(odd);
  even.Add(LatencyHistogram());
  CHECK(even.count() == whole.count());
  CHECK(even.minimum() == whole.minimum());
  CHECK(even.maximum() == whole.maximum());
  CHECK(even.mean() == Approx(whole.mean()));
  for (const std::uint32_t share : kShares) CHECK(even.At({share}) == whole.At({share}));
}

TEST_CASE("nothing recorded is zero, and values above the highest count as it") {
  LatencyHistogram histogram;
  CHECK(histogram.At({50'000}) == 0);
  CHECK(histogram.minimum() == 0);
  CHECK(histogram.mean() == 0);
  histogram.Record(~std::uint64_t{0}, 3);
  histogram.Record(5, 0);
  CHECK(histogram.count() == 3);
  CHECK(histogram.maximum() == LatencyHistogram::kHighest);
  CHECK(histogram.At({50'000}) == LatencyHistogram::kHighest);
}

}  // namespace
}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
// Percentiles of measured times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::tools {

struct Percentiles {
  std::size_t count = 0;
  double minimum = 0, median = 0, p90 = 0, p99 = 0, maximum = 0, total = 0;
};

// The p-th percentile is the smallest sample that at least p % of the samples do not exceed; the median of an
// even number is the mean of the middle two. All zero for no samples.
Percentiles PercentilesOf(std::vector<std::int64_t> samples);

}  // namespace rewire::tools

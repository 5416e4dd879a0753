// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/statistics.h"

#include <algorithm>
#include <numeric>

namespace rewire::tools {

Percentiles PercentilesOf(std::vector<std::int64_t> samples) {
  Percentiles percentiles;
  const std::size_t count = samples.size();
  if (count == 0) return percentiles;
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](std::size_t percent) {
    return static_cast<double>(samples[(count * percent + 99) / 100 - 1]);
  };
  const double lower = static_cast<double>(samples[(count - 1) / 2]);
  const double upper = static_cast<double>(samples[count / 2]);
  percentiles.count = count;
  percentiles.minimum = static_cast<double>(samples.front());
  percentiles.median = (lower + upper) / 2;
  percentiles.p90 = rank(90);
  percentiles.p99 = rank(99);
  percentiles.maximum = static_cast<double>(samples.back());
  percentiles.total = std::accumulate(samples.begin(), samples.end(), 0.0);
  return percentiles;
}

}  // namespace rewire::tools

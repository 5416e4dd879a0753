// SPDX-License-Identifier: Apache-2.0
// How measured times are spread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rewire::tools {

struct HistogramRow {
  std::int64_t from = 0;  // nanoseconds; the first row starts at the fastest sample
  std::int64_t to = 0;    // exclusive, but for the last row
  std::size_t count = 0;
};

// At most `rows` rows of equal width from the fastest to the 99th percentile. They end at twice the median,
// so that one disturbed sample does not put all others into one row. The last row also has all slower
// samples. Empty for no samples, one row if all are equal.
std::vector<HistogramRow> HistogramOf(std::vector<std::int64_t> samples, std::size_t rows = 12);

// A line for each row: its times, the number of samples, and a bar.
std::string HistogramText(const std::vector<HistogramRow>& rows, bool unicode);

}  // namespace rewire::tools

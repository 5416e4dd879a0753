// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/histogram.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

constexpr std::size_t kBarWidth = 40;  // of the longest bar

}  // namespace

std::vector<HistogramRow> HistogramOf(std::vector<std::int64_t> samples, std::size_t rows) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::int64_t fastest = samples.front();
  const std::int64_t slow = samples[(samples.size() * 99 + 99) / 100 - 1];  // the 99th percentile
  const std::int64_t most = std::min(slow, 2 * samples[(samples.size() - 1) / 2]);
  const std::int64_t step = (most - fastest) / static_cast<std::int64_t>(rows) + 1;
  std::vector<HistogramRow> histogram;
  for (std::int64_t from = fastest; from <= most; from += step) histogram.push_back({from, from + step, 0});
  for (const std::int64_t sample : samples) {
    const auto row = static_cast<std::size_t>((sample - fastest) / step);
    ++histogram[std::min(row, histogram.size() - 1)].count;
  }
  histogram.back().to = samples.back();
  return histogram;
}

std::string HistogramText(const std::vector<HistogramRow>& rows, bool unicode) {
  std::size_t most = 1;
  for (const HistogramRow& row : rows) most = std::max(most, row.count);
  std::string text;
  for (const HistogramRow& row : rows) {
    // At least one mark for what is there.
    const std::size_t marks = row.count == 0 ? 0 : std::max<std::size_t>(1, row.count * kBarWidth / most);
    std::string bar;
    for (std::size_t i = 0; i < marks; ++i) bar += unicode ? "█" : "#";
    text += fmt::format("  {:>8} to {:>8}  {:>8}{}{}\n", DurationText(static_cast<double>(row.from)),
                        DurationText(static_cast<double>(row.to)), row.count, bar.empty() ? "" : "  ", bar);
  }
  return text;
}

}  // namespace rewire::tools

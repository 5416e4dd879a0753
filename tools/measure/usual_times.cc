// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/usual_times.h"

#include <algorithm>
#include <numeric>

#include "rewire/tools/measure/statistics.h"

namespace rewire::tools {
namespace {

UsualTime Usual(const std::vector<std::int64_t>& times) {
  if (times.empty()) return {};
  const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
  return {PercentilesOf(times).median, 0, *fastest, *slowest};
}

}  // namespace

UsualTimes UsualTimesOf(const std::vector<std::int64_t>& runs,
                        const std::vector<std::vector<std::int64_t>>& places) {
  UsualTimes usual;
  usual.run = PercentilesOf(runs).median;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (static_cast<double>(runs[r]) > kDisturbed * usual.run) usual.disturbed.push_back(r);
  }
  std::vector<std::int64_t> outside = runs;
  for (const std::vector<std::int64_t>& place : places) {
    usual.places.push_back(Usual(place));
    for (std::size_t r = 0; r < runs.size(); ++r) outside[r] -= place[r];
  }
  for (std::int64_t& time : outside) time = std::max<std::int64_t>(0, time);
  usual.outside = Usual(outside);
  double total = usual.outside.run;
  for (const UsualTime& place : usual.places) total += place.run;
  if (total <= 0) return usual;
  for (UsualTime& place : usual.places) place.share = place.run / total;
  usual.outside.share = usual.outside.run / total;
  return usual;
}

std::vector<std::size_t> RankedPlaces(const UsualTimes& times) {
  std::vector<std::size_t> ranked(times.places.size());
  std::iota(ranked.begin(), ranked.end(), std::size_t{0});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](std::size_t a, std::size_t b) { return times.places[a].run > times.places[b].run; });
  return ranked;
}

}  // namespace rewire::tools

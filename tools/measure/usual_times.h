// SPDX-License-Identifier: Apache-2.0
// Profiles, the report page and Python rank the places of a program by one rule: what each usually takes in a
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::tools {

// The time of one place, such as an instruction or a node. Nanoseconds.
struct UsualTime {
  // The median over the runs of what the place takes in a run. If it is called once a run, that is the median
  // of a call. A run that something else disturbed changes it no more than one vote does.
  double run = 0;
  double share = 0;                       // of the sum of all places and the time outside of them, 0 to 1
  std::int64_t fastest = 0, slowest = 0;  // what it took in a run
};

struct UsualTimes {
  std::vector<UsualTime> places;
  UsualTime outside;                   // the rest of each run
  double run = 0;                      // the median of the runs
  std::vector<std::size_t> disturbed;  // runs that took more than kDisturbed times the median
};

inline constexpr double kDisturbed = 1.5;

// `places[i][r]` is what place i took in run r; all have as many entries as there are runs. Kernels of
// several threads may take more than their run: then nothing of it is outside.
UsualTimes UsualTimesOf(const std::vector<std::int64_t>& runs,
                        const std::vector<std::vector<std::int64_t>>& places);

// Positions of `places`, the longest first; equal ones keep their order.
std::vector<std::size_t> RankedPlaces(const UsualTimes& times);

}  // namespace rewire::tools

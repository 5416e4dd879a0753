// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace rewire::bench {

struct Summary {
  double median = 0;
  double low = 0;   // a quarter of the samples lie below
  double high = 0;  // a quarter of the samples lie above
};

// Summarizes at least one sample.
Summary Summarize(std::vector<double> samples);

}  // namespace rewire::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/serve/core/description.h"

namespace rewire::serve {

// Appends the statistics in the text format of Prometheus.
void AppendMetrics(const std::vector<ModelStatistics>& statistics, std::string* text);

}  // namespace rewire::serve

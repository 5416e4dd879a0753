// SPDX-License-Identifier: Apache-2.0
// Shows the measurements of loads as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tools/load/load.h"

namespace rewire::tools {

// The outcome of one plan, and the CPU time of whoever did the work: this process, or a server.
struct LoadRow {
  LoadResult result;
  std::chrono::nanoseconds cpu{0};
};

// An open loop whose requests found no free client in time: the rate is more than can be served.
bool IsSaturated(const LoadResult& result);

// A table with a row for each plan, and below it a line for each kind of error and each rate that was too
// much.
std::string LoadText(const std::vector<LoadRow>& rows);
nlohmann::ordered_json LoadJson(const LoadRow& row);

}  // namespace rewire::tools

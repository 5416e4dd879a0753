// SPDX-License-Identifier: Apache-2.0
// Tells how a model is split over several ranks: which layers, what is exchanged, and why others are not
// split.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// The file of a rank: "model.1.rwx" for "model.rwx".
std::string PathOfRank(const std::string& path, std::int64_t rank);

// A line for each layer and one for all, which are the same for all ranks. With `stages`, the rank's part of
// the time that the compiler estimates.
std::string ShardsText(const CompileReport& report, std::int64_t shards, std::int64_t stages);

nlohmann::ordered_json ShardsJson(const CompileReport& report);

}  // namespace rewire::tools

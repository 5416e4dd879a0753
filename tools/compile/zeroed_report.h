// SPDX-License-Identifier: Apache-2.0
// Tells which weights the compiler has made 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// "tiny-weights: 12 subnormal weights of 'conv1.weight' became 0 (Conv 'conv1')\n" for each constant.
std::string ZeroedWeightsText(const CompileReport& report);

// [{"constant": ..., "node": ..., "count": ...}]
nlohmann::ordered_json ZeroedWeightsJson(const CompileReport& report);

}  // namespace rewire::tools

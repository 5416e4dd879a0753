// SPDX-License-Identifier: Apache-2.0
//
// The report of --precision int8 or bf16, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// Tells what was quantized, what stayed float, and how far each output moved, one line each. `numbers` are
// what was asked for: "8-bit integers".
std::string PrecisionText(const CompileReport& report, const std::string& numbers);

nlohmann::ordered_json ProductsJson(const CompileReport& report);
nlohmann::ordered_json MovementJson(const CompileReport& report);

}  // namespace rewire::tools

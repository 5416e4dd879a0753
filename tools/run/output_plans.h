// SPDX-License-Identifier: Apache-2.0
// --explain-outputs: which outputs kernels can write into the caller's memory, and why others are copied.
// Also what is copied between devices.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/vm/program.h"

namespace rewire::tools {

// A line for each output, and for each copy between devices.
std::string OutputPlansText(const Program& program, std::uint32_t function);
nlohmann::ordered_json OutputPlansJson(const Program& program, std::uint32_t function);
nlohmann::ordered_json DeviceCopiesJson(const Program& program, std::uint32_t function);

}  // namespace rewire::tools

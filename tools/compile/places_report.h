// SPDX-License-Identifier: Apache-2.0
// Tells which kernel calls of a model that was compiled for a device run there, and which do not and why.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rewire/compiler/compiler.h"

namespace rewire::tools {

// "12 of 15 kernel calls run on opencl:0\n  2 of pad stay on the CPU: the device has no such kernel\n"
std::string PlacesText(const CompileReport& report, const std::string& device);

// [{"kernel": ..., "calls": ..., "reason": ...}]
nlohmann::ordered_json HostCallsJson(const CompileReport& report);

}  // namespace rewire::tools

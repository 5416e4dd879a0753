// SPDX-License-Identifier: Apache-2.0
// vm-inspect --memory: how much memory runs of a model's functions need.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executable_format/executable.h"
#include "vm/memory_bound.h"

namespace rewire::tools {

struct FunctionMemory {
  std::string function;
  MemoryBound unbound;  // no output is bound
  MemoryBound bound;    // all are
};

struct MemoryRequest {
  std::string function;               // empty: all but `__init`
  std::vector<std::string> max_dims;  // "N=64"
  std::vector<std::string> kernels;   // libraries to ask, besides the stock ones
};

// kInvalidArgument for a dimension that is not NAME=SIZE or that no signature has, kNotFound for a function
// or library. Stock libraries that are not there are done without.
Result<std::vector<FunctionMemory>> InspectMemory(const Executable& executable, const MemoryRequest& request);

std::string MemoryText(const std::vector<FunctionMemory>& functions);
nlohmann::ordered_json MemoryJson(const std::vector<FunctionMemory>& functions);

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
// vm-inspect --memory: how much memory runs of a model's functions need.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/memory_bound.h"

namespace rewire::tools {

struct FunctionMemory {
  std::string function;
  std::vector<std::string> devices;  // names of the executable's devices, by the table
  std::vector<std::string> open;     // symbolic dimensions whose largest size is not known
  MemoryBound unbound;               // no output is bound
  MemoryBound bound;                 // all outputs are bound
};

struct MemoryRequest {
  std::string function;               // empty: all functions except `__init`
  std::vector<std::string> max_dims;  // "N=64"
  std::vector<std::string> kernels;   // libraries to use in addition to the stock ones
};

// Errors: kInvalidArgument for a dimension that is not NAME=SIZE or that no signature has; kNotFound for a
// function or library. Missing stock libraries are no error.
Result<std::vector<FunctionMemory>> InspectMemory(const Executable& executable, const MemoryRequest& request);

std::string MemoryText(const std::vector<FunctionMemory>& functions);
nlohmann::ordered_json MemoryJson(const std::vector<FunctionMemory>& functions);

}  // namespace rewire::tools

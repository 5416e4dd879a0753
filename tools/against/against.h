// SPDX-License-Identifier: Apache-2.0
//
// --against: runs ONNX Runtime beside a program, and names the first node whose value differs.
// docs/vm-run.md.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

struct AgainstOptions {
  std::string model;               // the .onnx file
  std::string python;              // --python; empty: REWIRE_PYTHON, or else python3
  std::optional<double> relative;  // --rtol: of the element and of the tensor's largest one
  std::optional<double> absolute;  // --atol
};

struct AgainstReport {
  bool equal = true;  // all outputs agree
  std::string text;
  nlohmann::ordered_json json;
};

// `vm` has the function's inputs, which are `inputs`; it runs several times. Errors: kInvalidArgument if an
// input is no tensor of numbers, or if the executable does not name its values; and those of OnnxRuntime.
Result<AgainstReport> CompareAgainst(VirtualMachine* vm, std::uint32_t function, Span<const Value> inputs,
                                     const AgainstOptions& options);

}  // namespace rewire::tools

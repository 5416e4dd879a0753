// SPDX-License-Identifier: Apache-2.0
//
// Links the model that a tool runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/io/open_model.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/program.h"

namespace rewire::tools {

struct LinkChoices {
  std::vector<std::string> kernels;     // --kernels: shared libraries, besides those of the model
  std::vector<std::string> parameters;  // --params: files of tensors by name
  std::int32_t threads = 0;             // of kernels; 0: one per core
  Limits limits;
  std::optional<std::chrono::nanoseconds> deadline;  // of linking
  StorageFill storage_fill = StorageFill::kUndefined;
  bool trust_device_code = false;  // --trust-device-code
};

// The help text of --trust-device-code.
inline constexpr const char kTrustDeviceCodeHelp[] =
    "run code for devices that the file itself holds; it is native code, so do this only if you trust its "
    "origin";

// Errors of linking begin with `file`.
Result<Program> LinkModel(const OpenedModel& model, const std::string& file, const LinkChoices& choices);

}  // namespace rewire::tools

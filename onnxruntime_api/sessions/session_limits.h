// SPDX-License-Identifier: Apache-2.0
//
// Limits that the config entries of a session set, for models from strangers.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "rewire/base/status.h"
#include "rewire/vm/limits.h"

namespace rewire::onnxruntime_api {

struct SessionLimits {
  Limits run;                             // of one run; its bytes are those of loading, too
  std::chrono::milliseconds run_time{};   // 0: none
  std::chrono::milliseconds load_time{};  // 0: none
  bool zero_memory = false;               // memory is zero before a run writes it
};

// Reads the entries session.rewire_max_bytes, _max_steps, _max_run_ms, _max_load_ms and _zero_memory. Errors:
// kInvalidArgument for a value that is no such number.
Result<SessionLimits> ReadLimits(const std::map<std::string, std::string>& config);

}  // namespace rewire::onnxruntime_api

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rewire/base/status.h"

namespace rewire::tools {

// The CPU time, of users and of the system, that all threads of a process have taken so far; without a
// number, of this process. Another process's comes in ticks of 10 ms. Errors: kNotFound if there is no such
// process.
Result<std::chrono::nanoseconds> ProcessTime(std::optional<std::int32_t> process);

}  // namespace rewire::tools

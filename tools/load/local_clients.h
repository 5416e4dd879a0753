// SPDX-License-Identifier: Apache-2.0
// Clients of a load that run a program in this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/load/load.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

struct LocalCall {
  std::uint32_t function = 0;
  std::vector<Value> inputs;                         // of every call
  Limits limits;                                     // of one call
  std::optional<std::chrono::nanoseconds> deadline;  // of one call
};

// Makes `count` clients with a VM each. The program is shared. Errors: those of setting an input.
Result<std::vector<std::unique_ptr<LoadClient>>> MakeLocalClients(const Program& program,
                                                                  const LocalCall& call, std::size_t count);

}  // namespace rewire::tools

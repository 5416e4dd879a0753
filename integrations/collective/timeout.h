// SPDX-License-Identifier: Apache-2.0
//
// How long a call waits for ranks that run.
#pragma once

#include <chrono>

#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

// Reads REWIRE_COLLECTIVE_TIMEOUT, which is in seconds; 600 where it is not set.
kernel::Status ReadTimeout(std::chrono::milliseconds* timeout);

// The failure of a wait that has lasted as long.
kernel::Status TimedOut(std::chrono::milliseconds timeout);

}  // namespace rewire::collective

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rewire/base/status.h"

namespace rewire::serve {

struct SandboxLimits {
  std::uint64_t memory_bytes = 0;  // of address space, beside what the process has already
};

// Takes from this process, for good and for all its threads, what computing does not need. What is left:
// memory, its open files, waiting, and the time. There are no new files, processes, threads, programs or
// executable pages. A system call that libraries make without need, such as opening a file, fails. Any other
// one ends the process (SIGSYS). Call it before anything untrusted is read. Errors: kIo.
Status LockDown(const SandboxLimits& limits);

}  // namespace rewire::serve

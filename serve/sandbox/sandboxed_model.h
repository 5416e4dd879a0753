// SPDX-License-Identifier: Apache-2.0
//
// A model whose executable is not trusted: each VM runs it in a process of its own, which can compute and
// nothing else (serve/worker/lock_down.h).
//
// The server does not read the executable. It has a program with one kernel in its place, as for a model on
// another server, which gives inputs to the process and takes outputs from it.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/serve/core/description.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/limits.h"

namespace rewire::serve {

struct SandboxedModel {
  Executable executable;
  KernelSet kernels;  // its only kernel
};

// Starts a process with the executable of a file. `limits` are those of a run, and `threads` of a run the
// number. Errors: kUnsupported if this server has no sandbox; kIo if no process can be started, or if it
// ends; those of opening and linking the executable.
Result<SandboxedModel> OpenSandboxed(const std::string& path, const SandboxSettings& settings,
                                     const Limits& limits, std::int32_t threads);

}  // namespace rewire::serve

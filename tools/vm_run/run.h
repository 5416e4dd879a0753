// SPDX-License-Identifier: Apache-2.0
//
// The work of vm-run, after its command line is parsed.
#pragma once

#include "rewire/base/status.h"
#include "rewire/tools/run/run_options.h"

namespace rewire::tools {

// Prints to standard output. Returns the exit code: 0, or kExitNo if an output is not as expected.
Result<int> Run(const RunOptions& options);

}  // namespace rewire::tools

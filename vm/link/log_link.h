// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/vm/kernel_set.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire {

// Tells the host's log where kernels were found, a message for each source, and which devices are used. Does
// nothing if there is no log. `kernels` has resolved all imports of `code`.
void LogLink(const LinkedCode& code, const KernelSet& kernels);

}  // namespace rewire

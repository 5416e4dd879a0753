// SPDX-License-Identifier: Apache-2.0
//
// Compares what an executable declares about its kernels with the kernels' rows.
#pragma once

#include "rewire/base/status.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire {

// The kernel's library decides which arguments it writes, not the file. So linking fails if an import
// declares otherwise, or if a call declares another number of outputs. kLinkFailed names import, call, row,
// expected and given. For kernels without a row, the import's declaration counts.
//
// Some calls cannot pass exactly their registers as arguments, because some registers must be ADTs that are
// flattened. The kernel is then no longer `plain`, and the interpreter counts the arguments of its calls.
Status CheckKernelRows(LinkedCode* code);

}  // namespace rewire

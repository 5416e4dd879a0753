// SPDX-License-Identifier: Apache-2.0
// Compacts a translated function: foreign compilers give every expression a register of its own and leave
// code behind that nothing reaches, while the VM's stack and the verifier's state grow with registers.
#pragma once

#include "base/status.h"
#include "executable_format/module.h"

namespace rewire::tvm {

// Rewrites `function.code`, which must be well formed (a CodeWriter made it): drops what no path reaches,
// loads and moves whose result nothing reads, and kills that a Ret follows; then renumbers the registers so
// that those that are never live at once share a number, and sets register_count. Inputs keep registers 0, 1,
// ... What a path reads undefined stays undefined. Drops the notes. kInvalidFile: an instruction's successor
// is missing. kUnsupported: the analysis would take more than 256 MiB.
Status CompactFunction(Function& function);

}  // namespace rewire::tvm

// SPDX-License-Identifier: Apache-2.0
//
// Compacts a translated function.
//
// Foreign compilers give every expression its own register and leave unreachable code behind. The VM's stack
// and the verifier's state grow with the number of registers, so both are reduced here.
#pragma once

#include <string>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

// Rewrites `function.code`, which must be well formed (made by a CodeWriter).
//
// - It drops unreachable code, loads and moves whose result nothing reads, and kills directly before a Ret.
// - It renumbers the registers, so that registers that are never live at the same time share a number, and
//   sets register_count. Inputs keep registers 0, 1, ...
//
// - It puts a Fatal in place of a read of a register that holds nothing on any path to it (empty_reads.h).
// The note,
//   which names the instruction and the register as the foreign code does, is added to `strings`.
//
// Other undefined reads stay so, and the verifier refuses them. Notes are dropped. Errors: kInvalidFile if an
// instruction's successor is missing; kUnsupported if the analysis would take more than 256 MiB.
Status CompactFunction(Function& function, Array<std::string>* strings);

}  // namespace rewire::tvm

// SPDX-License-Identifier: Apache-2.0
//
// The content of a register or a kernel's argument: in a few words, and as a value.
#pragma once

#include <string>

#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/value.h"

namespace rewire::tools {

// "f32[2, 3]", "5", "adt 1 (2 fields)", "closure", "storage (64 B)", "nothing".
std::string RegisterText(const RewireFFIAny& value);

// A reference to what a register holds. The VM keeps its own.
Value ShareRegister(const RewireFFIAny& any);

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
//
// Describes the content of a register or a kernel's argument in a few words.
#pragma once

#include <string>

#include "rewire/vm/kernel/ffi_abi.h"

namespace rewire::tools {

// "f32[2, 3]", "5", "adt 1 (2 fields)", "closure", "storage (64 B)", "nothing".
std::string RegisterText(const RewireFFIAny& value);

}  // namespace rewire::tools

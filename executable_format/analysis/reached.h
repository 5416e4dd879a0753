// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// By function of the module: true if it may run when `first` runs, by a call or as a closure. The code's
// structure must be verified.
Array<std::uint8_t> FunctionsReached(const Module& module, std::uint32_t first);

}  // namespace rewire

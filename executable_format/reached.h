// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/array.h"
#include "executable_format/module.h"

namespace rewire {

// By function of the module: whether it may run when `first` does, as one that is called or that becomes a
// closure. Code whose structure has been verified.
Array<std::uint8_t> FunctionsReached(const Module& module, std::uint32_t first);

}  // namespace rewire

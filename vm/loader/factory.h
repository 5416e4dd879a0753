// SPDX-License-Identifier: Apache-2.0
//
// Makes a kernel from its factory and the attributes of an import.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// Calls `factory` with the import's attributes (vm/kernel/kernel.h describes their form). The result is the
// function object that it returns; it keeps the factory's library loaded. `source` says where the factory
// came from. Errors: kKernelFailed with the factory's own message, or if it returns something else.
Result<PackedFunction> MakeFromFactory(const PackedFunction& factory, const KernelImport& import,
                                       const std::string& source);

}  // namespace rewire

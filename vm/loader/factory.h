// SPDX-License-Identifier: Apache-2.0
// Making a kernel from its factory and the attributes of an import.
#pragma once

#include <string>

#include "base/status.h"
#include "executable_format/module.h"
#include "vm/packed_function.h"

namespace rewire {

// Calls `factory` with the import's attributes (vm/kernel/kernel.h gives their form). The function object
// that it returns is the result, which keeps the factory's library loaded. `source` says where the factory
// came from. Errors: kKernelFailed with the factory's own message, or when it returns something else.
Result<PackedFunction> MakeFromFactory(const PackedFunction& factory, const KernelImport& import,
                                       const std::string& source);

}  // namespace rewire

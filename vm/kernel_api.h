// SPDX-License-Identifier: Apache-2.0
// The table of functions that kernels call back (vm/kernel/kernel.h), as this process provides it.
#pragma once

#include "vm/kernel/kernel.h"

namespace rewire {

// Static storage. What the loader writes into a library's `__rewire_kernel_api`, and what a host hands to
// kernels that it links statically.
const RewireKernelApi* KernelApi();

// Gives a workspace of the kernel that runs on this thread back before it returns. False when it has none at
// this address.
bool FreeWorkspace(void* block);

}  // namespace rewire

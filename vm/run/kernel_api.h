// SPDX-License-Identifier: Apache-2.0
// The table of functions that kernels call back (vm/kernel/kernel.h), as this process provides it.
#pragma once

#include "rewire/vm/kernel/kernel.h"

namespace rewire {

// The table, with static storage. The loader writes its address into a library's `__rewire_kernel_api`. A
// host passes it to kernels that it links statically.
const RewireKernelApi* KernelApi();

// Frees a workspace of the kernel that runs on this thread before the kernel returns. Returns false if the
// kernel has none at this address.
bool FreeWorkspace(void* block);

}  // namespace rewire

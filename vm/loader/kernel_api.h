// SPDX-License-Identifier: Apache-2.0
// The table of functions that kernels call back (vm/kernel/kernel.h), as this process provides it.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/kernel.h"

namespace rewire {

// The table, with static storage. The loader writes its address into a library's `__rewire_kernel_api`. A
// host passes it to kernels that it links statically.
const RewireKernelApi* KernelApi();

// Frees a workspace of the kernel that runs on this thread before the kernel returns. Returns false if the
// kernel has none at this address.
bool FreeWorkspace(void* block);

// Whether the call that runs on this thread declares its argument at `position`, of `count`, as written. It
// must not write the others. False outside a kernel.
bool WritesArgument(std::uint32_t position, std::uint32_t count);

}  // namespace rewire

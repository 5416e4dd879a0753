// SPDX-License-Identifier: Apache-2.0
// Accesses that the machine refuses: of host code to simulated device memory, and of kernels to anything.
#pragma once

#include "rewire/tests/simulated_cuda/device_memory.h"

namespace rewire::simulated_cuda {

// Makes this the one that is told of bad accesses. Test runners put themselves there again and again, so this
// is called for each context and each kernel.
void WatchFaults();

// An access of host code to this memory is explained on standard error before the process gets its signal.
void WatchHostAccess(const DeviceMemory& memory);

// While a kernel runs on this thread, `caught` is called for a bad access in place of the signal. It must not
// return.
void CatchFaultsOnThisThread(void (*caught)());

}  // namespace rewire::simulated_cuda

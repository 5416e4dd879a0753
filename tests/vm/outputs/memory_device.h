// SPDX-License-Identifier: Apache-2.0
//
// A device whose memory the host may read and write. So programs and kernels of the host can be repeated with
// all their memory on a device.
#pragma once

#include <string>

#include "rewire/executable_format/module.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire::test {

inline constexpr DLDevice kMemoryDevice = {kDLExtDev, 0};

// Static storage.
const RewireDeviceApi& MemoryDevice();

// Puts all tensors of floats that the module names or allocates on kMemoryDevice; integers stay on the host.
void MoveToMemoryDevice(Module* module);

}  // namespace rewire::test

// SPDX-License-Identifier: Apache-2.0
//
// A kernel of an executable's device code as a packed function.
#pragma once

#include <memory>

#include "rewire/executable_format/executable.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/device/loaded_module.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// The function checks the tensors of a call, computes the launch and gives it to the stream of the VM that
// runs. It allocates nothing. It has a row with the parameters of `entry`, which is one of `executable`. It
// keeps the executable, and `loaded`, in which the driver found `kernel`.
PackedFunction MakeDeviceKernel(const Executable& executable, const DeviceKernelEntry& entry,
                                const LinkedDevice& device, std::shared_ptr<const LoadedModule> loaded,
                                void* kernel);

}  // namespace rewire

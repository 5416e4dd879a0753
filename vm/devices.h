// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/devices.h>.
//
// Opens device libraries. docs/devices.md has the rest.
#pragma once

#include <string>

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/tensor.h"

namespace rewire {

// Opens a device library, for LinkOptions::devices or to see what devices there are (RewireDeviceApi::count
// and properties). `name` is "opencl" or "cuda" for a library that Rewire comes with, or the path of a file.
// The struct lives until the process ends, because results on a device may outlive every Program.
//
// Opening a library runs its code. Errors: kNotFound if there is no such library; kLinkFailed if it cannot
// work here, with what is missing: a driver's library, or a device; kUnsupported in builds without dlopen.
REWIRE_API Result<const DeviceApi*> OpenDevice(const std::string& name);

// A copy of a tensor in memory of the host; the tensor itself if it is there already. For results of Programs
// on devices of their own. Errors: kInvalidArgument if the memory was not allocated by a VM; those of the
// device.
REWIRE_API Result<Tensor> CopyToHost(const Tensor& tensor);

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
//
// CommandBuffers: the functions of the extension cl_khr_command_buffer, for one device.
//
// The extension is provisional: from version 0.9.5 on its functions take other arguments. So only earlier
// versions are used. Command buffers are used only if one may be enqueued while it still runs, because
// replays do not wait for each other.
#pragma once

#include "rewire/devices/opencl/driver.h"

#include <CL/cl_ext.h>

namespace rewire::opencl {

struct CommandBuffers {
  clCreateCommandBufferKHR_fn create = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clCommandNDRangeKernelKHR_fn launch = nullptr;
  clCommandCopyBufferKHR_fn copy = nullptr;
  clCommandFillBufferKHR_fn fill = nullptr;

  // False, with nothing set, if the device has no command buffers that can be used.
  bool Open(const Driver& driver, cl_platform_id platform, cl_device_id device);
};

}  // namespace rewire::opencl

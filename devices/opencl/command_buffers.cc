// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/command_buffers.h"

#include <cstring>
#include <type_traits>
#include <vector>

namespace rewire::opencl {
namespace {

constexpr cl_version kFirstOther = CL_MAKE_VERSION(0, 9, 5);

bool HasExtension(const Driver& driver, cl_device_id device) {
  std::size_t bytes = 0;
  if (driver.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &bytes) != CL_SUCCESS) {
    return false;
  }
  std::vector<cl_name_version> extensions(bytes / sizeof(cl_name_version));
  if (driver.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION,
                             extensions.size() * sizeof(cl_name_version), extensions.data(),
                             nullptr) != CL_SUCCESS) {
    return false;
  }
  for (const cl_name_version& extension : extensions) {
    if (std::strncmp(extension.name, "cl_khr_command_buffer", sizeof(extension.name)) == 0) {
      return extension.version < kFirstOther;
    }
  }
  return false;
}

}  // namespace

bool CommandBuffers::Open(const Driver& driver, cl_platform_id platform, cl_device_id device) {
  if (driver.clGetExtensionFunctionAddressForPlatform == nullptr || !HasExtension(driver, device))
    return false;
  cl_device_command_buffer_capabilities_khr can = 0;
  cl_command_queue_properties needed = 0;
  if (driver.clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(can), &can, nullptr) !=
          CL_SUCCESS ||
      driver.clGetDeviceInfo(device, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof(needed),
                             &needed, nullptr) != CL_SUCCESS) {
    return false;
  }
  // Our queues have no properties.
  if ((can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) == 0 || needed != 0) return false;
  CommandBuffers found;
  const auto find = [&](auto* function, const char* name) {
    void* address = driver.clGetExtensionFunctionAddressForPlatform(platform, name);
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(address);
    return address != nullptr;
  };
  if (!find(&found.create, "clCreateCommandBufferKHR") ||
      !find(&found.finalize, "clFinalizeCommandBufferKHR") ||
      !find(&found.release, "clReleaseCommandBufferKHR") ||
      !find(&found.enqueue, "clEnqueueCommandBufferKHR") ||
      !find(&found.launch, "clCommandNDRangeKernelKHR") || !find(&found.copy, "clCommandCopyBufferKHR") ||
      !find(&found.fill, "clCommandFillBufferKHR")) {
    return false;
  }
  *this = found;
  return true;
}

}  // namespace rewire::opencl

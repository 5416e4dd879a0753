// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rewire::opencl {

bool State::Open(std::string* reason) {
  if (!driver.Open(reason)) return false;
  cl_uint count = 0;
  if (driver.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) {
    *reason =
        "libOpenCL.so.1 finds no platform: no driver of OpenCL is installed (on Debian, pocl-opencl-icd "
        "is one for CPUs)";
    return false;
  }
  std::vector<cl_platform_id> platforms(count);
  if (const cl_int error = driver.clGetPlatformIDs(count, platforms.data(), nullptr); error != CL_SUCCESS) {
    *reason = "clGetPlatformIDs: " + ErrorName(error);
    return false;
  }
  const char* wanted = std::getenv("REWIRE_OPENCL_PLATFORM");
  if (wanted != nullptr) {
    const auto differs = [&](cl_platform_id platform) {
      return PlatformText(platform, CL_PLATFORM_NAME).find(wanted) == std::string::npos;
    };
    platforms.erase(std::remove_if(platforms.begin(), platforms.end(), differs), platforms.end());
  }
  for (const cl_device_type type : {CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU}) {
    for (const cl_platform_id platform : platforms) AddDevices(platform, type);
  }
  if (!devices.empty()) return true;
  *reason = "the OpenCL platforms have no device";
  if (wanted != nullptr) *reason += std::string(" (REWIRE_OPENCL_PLATFORM=") + wanted + ")";
  return false;
}

bool State::AddDevices(cl_platform_id platform, cl_device_type type) {
  cl_uint count = 0;
  if (driver.clGetDeviceIDs(platform, type, 0, nullptr, &count) != CL_SUCCESS || count == 0) return false;
  std::vector<cl_device_id> found(count);
  if (driver.clGetDeviceIDs(platform, type, count, found.data(), nullptr) != CL_SUCCESS) return false;
  cl_context& context = contexts_[platform];
  if (context == nullptr) {
    cl_uint all = 0;
    cl_int error = driver.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &all);
    if (error != CL_SUCCESS) return false;
    std::vector<cl_device_id> every(all);
    error = driver.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, all, every.data(), nullptr);
    if (error != CL_SUCCESS) return false;
    context = driver.clCreateContext(nullptr, all, every.data(), nullptr, nullptr, &error);
    if (error != CL_SUCCESS) return false;
  }
  for (const cl_device_id id : found) {
    Device device;
    device.id = id;
    device.context = context;
    cl_int error = CL_SUCCESS;
    device.queue = driver.clCreateCommandQueue(context, id, 0, &error);
    if (error != CL_SUCCESS) continue;
    device.name = DeviceText(id, CL_DEVICE_NAME);
    device.driver = PlatformText(platform, CL_PLATFORM_NAME) + ", " + DeviceText(id, CL_DRIVER_VERSION);
    // "OpenCL 3.0 PoCL HSTR: ..." -> "opencl-3.0"
    const std::string version = DeviceText(id, CL_DEVICE_VERSION);
    device.architecture = "opencl-" + version.substr(std::min<std::size_t>(7, version.size()), 3);
    devices.push_back(std::move(device));
    Describe(&devices.back());
    const char* allowed = std::getenv("REWIRE_OPENCL_COMMAND_BUFFERS");
    if (allowed == nullptr || std::strcmp(allowed, "0") != 0) {
      devices.back().command_buffers.Open(driver, platform, id);
    }
  }
  return true;
}

std::string State::PlatformText(cl_platform_id platform, cl_platform_info what) const {
  std::size_t bytes = 0;
  if (driver.clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  driver.clGetPlatformInfo(platform, what, bytes, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::string State::DeviceText(cl_device_id device, cl_device_info what) const {
  std::size_t bytes = 0;
  if (driver.clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  driver.clGetDeviceInfo(device, what, bytes, text.data(), nullptr);
  text.resize(std::strlen(text.c_str()));
  return text;
}

void State::Describe(Device* device) const {
  RewireDeviceProperties& is = device->properties;
  const cl_device_id id = device->id;
  is.struct_size = sizeof(is);
  is.compute_units = DeviceValue<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  is.name = device->name.c_str();
  is.driver = device->driver.c_str();
  is.architecture = device->architecture.c_str();
  is.memory_bytes = DeviceValue<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  is.largest_block = std::min<std::uint64_t>(DeviceValue<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
                                             AddressSpace::kLargest);
  is.shared_bytes = DeviceValue<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  is.group_threads = static_cast<std::uint32_t>(DeviceValue<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  std::size_t sizes[8] = {};
  driver.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, nullptr);
  for (int i = 0; i < 3; ++i) is.group_sizes[i] = static_cast<std::uint32_t>(sizes[i]);
  // Reported in bits.
  is.part_alignment = std::max<std::uint32_t>(DeviceValue<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1);
  is.alignment = is.part_alignment;
  is.warp_threads = 1;
  is.code_forms = 1u << REWIRE_DEVICE_CODE_OPENCL_C;
  const std::string extensions = DeviceText(id, CL_DEVICE_EXTENSIONS);
  if (driver.clCreateProgramWithIL != nullptr &&
      DeviceText(id, CL_DEVICE_IL_VERSION).find("SPIR-V") != std::string::npos) {
    is.code_forms |= 1u << REWIRE_DEVICE_CODE_SPIRV;
  }
  is.has_f16 = extensions.find("cl_khr_fp16") != std::string::npos ? 1 : 0;
  is.records = 1;
  is.has_f64 = extensions.find("cl_khr_fp64") != std::string::npos ? 1 : 0;
}

int State::RefuseIfRecorded(cl_command_queue queue, const char* what) {
  if (recordings.Find(queue) == nullptr) return REWIRE_DEVICE_OK;
  return FailWith(REWIRE_DEVICE_UNSUPPORTED, std::string(what) + " cannot be recorded");
}

Device* State::Find(DLDevice device) {
  const auto index = static_cast<std::size_t>(device.device_id);
  if (device.device_id >= 0 && index < devices.size()) return &devices[index];
  devices::NoDevice(kKind, device.device_id, devices.size());
  return nullptr;
}

}  // namespace rewire::opencl

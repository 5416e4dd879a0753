// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/state.h"

#include <cstring>

namespace rewire::cuda {
namespace {

constexpr unsigned kBytesOfBlocks = 256;  // alignment of what cuMemAlloc gives, as CUDA's guide has it

// "13.0" of 13000
std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

bool State::Open(std::string* reason) {
  if (!OpenDriver(&driver, reason)) return false;
  if (const CUresult error = driver.cuInit(0); error != CUDA_SUCCESS) {
    FailIn(driver, "cuInit", error);
    *reason = LastWords();
    return false;
  }
  int count = 0;
  driver.cuDeviceGetCount(&count);
  if (count == 0) {
    *reason = "CUDA's driver finds no device";
    return false;
  }
  if (!OpenNvrtc(&nvrtc, &nvrtc_reason)) nvrtc.nvrtcVersion = nullptr;
  for (int i = 0; i < count; ++i) {
    if (!Describe(i, reason)) return false;
  }
  return true;
}

bool State::Describe(int ordinal, std::string* reason) {
  Device& device = devices.emplace_back();
  char name[256] = {};
  std::size_t bytes = 0;
  CUresult error = driver.cuDeviceGet(&device.device, ordinal);
  if (error == CUDA_SUCCESS) error = driver.cuDeviceGetName(name, sizeof(name), device.device);
  if (error == CUDA_SUCCESS) error = driver.cuDeviceTotalMem(&bytes, device.device);
  if (error != CUDA_SUCCESS) {
    FailIn(driver, "cuDeviceGet", error);
    *reason = LastWords();
    return false;
  }
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, device.device) == CUDA_SUCCESS ? value : 0;
  };
  const auto number = [&](CUdevice_attribute which) { return static_cast<std::uint32_t>(attribute(which)); };
  int version = 0;
  driver.cuDriverGetVersion(&version);
  device.name = name;
  device.driver = "CUDA " + VersionText(version);
  device.architecture = "sm_" + std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
                        std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  device.has_pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0 &&
                     driver.cuMemAllocAsync != nullptr && driver.cuMemFreeAsync != nullptr;
  RewireDeviceProperties& is = device.properties;
  is.struct_size = sizeof(is);
  is.compute_units = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  is.name = device.name.c_str();
  is.driver = device.driver.c_str();
  is.architecture = device.architecture.c_str();
  is.memory_bytes = bytes;
  is.largest_block = bytes;
  is.shared_bytes = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  is.group_threads = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  is.group_sizes[0] = number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  is.group_sizes[1] = number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  is.group_sizes[2] = number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  is.alignment = kBytesOfBlocks;
  is.part_alignment = 1;
  is.warp_threads = number(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  is.code_forms =
      1u << REWIRE_DEVICE_CODE_PTX | 1u << REWIRE_DEVICE_CODE_CUBIN | 1u << REWIRE_DEVICE_CODE_FATBIN;
  if (nvrtc_reason.empty()) is.code_forms |= 1u << REWIRE_DEVICE_CODE_CUDA_CPP;
  is.has_f16 = 1;
  is.has_f64 = 1;
  is.records = driver.cuStreamBeginCapture != nullptr && driver.cuStreamEndCapture != nullptr &&
                       driver.cuGraphInstantiate != nullptr && driver.cuGraphLaunch != nullptr
                   ? 1
                   : 0;
  return true;
}

Device* State::Find(DLDevice device, int* code) {
  const auto index = static_cast<std::size_t>(device.device_id);
  if (device.device_id < 0 || index >= devices.size()) {
    *code = devices::NoDevice(kKind, device.device_id, devices.size());
    return nullptr;
  }
  Device& found = devices[index];
  {
    const std::lock_guard<std::mutex> lock(found.mutex);
    if (found.context == nullptr) {
      const CUresult error = driver.cuDevicePrimaryCtxRetain(&found.context, found.device);
      if (error != CUDA_SUCCESS) {
        found.context = nullptr;
        *code = FailIn(driver, "cuDevicePrimaryCtxRetain", error);
        return nullptr;
      }
      // Free memory stays with the pool, or each wait would give it back to the system.
      CUmemoryPool pool = nullptr;
      std::uint64_t all = ~std::uint64_t{0};
      if (found.has_pools && driver.cuDeviceGetDefaultMemPool != nullptr &&
          driver.cuDeviceGetDefaultMemPool(&pool, found.device) == CUDA_SUCCESS) {
        driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
      }
    }
  }
  return &found;
}

Entered State::Enter(DLDevice device, int* code) {
  Device* found = Find(device, code);
  if (found == nullptr) return {};
  *code = CodeOf(driver, "cuCtxPushCurrent", driver.cuCtxPushCurrent(found->context));
  const bool entered = *code == REWIRE_DEVICE_OK;
  return {driver, entered ? found : nullptr, entered};
}

Entered State::EnterToRelease(DLDevice device) {
  int code = REWIRE_DEVICE_OK;
  Device* found = Find(device, &code);
  if (found == nullptr) found = Find(device, &code);
  const auto index = static_cast<std::size_t>(device.device_id);
  if (found == nullptr)
    return {driver, device.device_id >= 0 && index < devices.size() ? &devices[index] : nullptr, false};
  const bool entered = driver.cuCtxPushCurrent(found->context) == CUDA_SUCCESS ||
                       driver.cuCtxPushCurrent(found->context) == CUDA_SUCCESS;
  return {driver, found, entered};
}

}  // namespace rewire::cuda

// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: errors, symbols, devices, contexts.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "rewire/tests/simulated_cuda/faults.h"
#include "rewire/tests/simulated_cuda/simulator.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

// As the one header that is needed for cuGetProcAddress: all functions are exported by symbol.
extern "C" {
#define REWIRE_DECLARE(name, symbol, parameters, need) \
  __attribute__((visibility("default"))) CUresult symbol parameters;
REWIRE_CUDA_FUNCTIONS(REWIRE_DECLARE)
#undef REWIRE_DECLARE
}

struct Symbol {
  std::string_view name, plain_name;
  void* function;
};
const Symbol kSymbols[] = {
#define REWIRE_SYMBOL_ROW(name, symbol, parameters, need) {#symbol, #name, reinterpret_cast<void*>(&symbol)},
    REWIRE_CUDA_FUNCTIONS(REWIRE_SYMBOL_ROW)
#undef REWIRE_SYMBOL_ROW
};

constexpr int kVersion = 13000;

Device* DeviceAt(const Call& call, CUdevice device) {
  const auto& devices = call.simulator().devices;
  return device >= 0 && static_cast<std::size_t>(device) < devices.size()
             ? devices[static_cast<std::size_t>(device)].get()
             : nullptr;
}

int AttributeOf(const Device& device, CUdevice_attribute attribute, bool* known) {
  *known = true;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1000000;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 4;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      return 0;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1000000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 64;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 1 << 20;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return device.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return device.minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
  }
  *known = false;
  return 0;
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuInit(unsigned flags) {
  Call call("cuInit", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.simulator().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  call.simulator().initialized = true;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion", Call::kWithoutContext);
  // The one question that needs no cuInit.
  if (call.Fails() && call.result() != CUDA_ERROR_NOT_INITIALIZED) return call.result();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kVersion;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                     std::uint64_t, CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const auto* found = std::find_if(std::begin(kSymbols), std::end(kSymbols), [symbol](const Symbol& row) {
    return row.plain_name == symbol || row.name == symbol;
  });
  const bool known = found != std::end(kSymbols) && version <= kVersion;
  if (status != nullptr) {
    *status = known ? CU_GET_PROC_ADDRESS_SUCCESS
                    : (found != std::end(kSymbols) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  }
  if (known) *function = found->function;
  return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

REWIRE_SIMULATED_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define REWIRE_ROW(code, value, text) \
  case code:                          \
    *name = #code;                    \
    return CUDA_SUCCESS;
    REWIRE_CUDA_RESULTS(REWIRE_ROW)
#undef REWIRE_ROW
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  switch (error) {
#define REWIRE_ROW(code, value, words) \
  case code:                           \
    *text = words;                     \
    return CUDA_SUCCESS;
    REWIRE_CUDA_RESULTS(REWIRE_ROW)
#undef REWIRE_ROW
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  *count = static_cast<int>(call.simulator().devices.size());
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Call call("cuDeviceGet", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (DeviceAt(call, ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  Call call("cuDeviceGetName", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (DeviceAt(call, device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(name, "Rewire simulated CUDA device", static_cast<std::size_t>(size));
  name[size - 1] = '\0';
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                                      CUdevice device) {
  Call call("cuDeviceGetAttribute", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const Device* of = DeviceAt(call, device);
  if (of == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  bool known = false;
  *value = AttributeOf(*of, attribute, &known);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  Call call("cuDeviceTotalMem", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const Device* of = DeviceAt(call, device);
  if (of == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = of->memory.total();
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (DeviceAt(call, device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, "simulated CUDA  ", sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  Call call("cuDeviceCanAccessPeer", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (DeviceAt(call, device) == nullptr || DeviceAt(call, peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Call call("cuDevicePrimaryCtxRetain", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  Device* of = DeviceAt(call, device);
  if (of == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  ++of->retained;
  WatchFaults();
  *context = reinterpret_cast<CUcontext>(&of->context);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call("cuDevicePrimaryCtxRelease", Call::kRelease);
  Device* of = DeviceAt(call, device);
  if (of == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (of->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (of->retained == 1) call.simulator().WaitForDevice(call.lock(), of);
  // As with a real driver, the last release ends what an earlier failure has left behind.
  if (--of->retained == 0) of->lost = CUDA_SUCCESS;
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  Call call("cuCtxSetCurrent", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  ContextStack& stack = CurrentThread().contexts;
  if (!stack.empty()) stack.Pop();
  return context == nullptr || stack.Push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  Call call("cuCtxGetCurrent", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  *context = CurrentThread().contexts.top();
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  Call call("cuCtxPushCurrent", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return CurrentThread().contexts.Push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  Call call("cuCtxPopCurrent", Call::kRelease);
  ContextStack& stack = CurrentThread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.top();
  stack.Pop();
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  Call call("cuCtxGetDevice");
  if (call.Fails()) return call.result();
  *device = call.device()->index;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxSynchronize() {
  Call call("cuCtxSynchronize");
  if (call.Fails()) return call.result();
  if (call.ForbiddenByCapture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  call.simulator().WaitForDevice(call.lock(), call.device());
  return call.device()->lost;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cuCtxGetStreamPriorityRange");
  if (call.Fails()) return call.result();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Call call("cuCtxEnablePeerAccess");
  if (call.Fails()) return call.result();
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Device* other = reinterpret_cast<Context*>(peer)->device;
  if (other == call.device() || flags != 0) return CUDA_ERROR_INVALID_DEVICE;
  return call.device()->peers.insert(other->index).second ? CUDA_SUCCESS
                                                          : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)

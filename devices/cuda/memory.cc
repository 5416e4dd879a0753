// SPDX-License-Identifier: Apache-2.0
//
// Blocks in stream order, pinned memory, copies and fills.
#include <cstring>

#include "rewire/devices/cuda/state.h"
#include "rewire/vm/kernel/device_type.h"

namespace rewire::cuda {
namespace {

int Allocate(void* context, DLDevice device, std::uint64_t bytes, std::uint64_t alignment, const char* scope,
             void* stream, void** block) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered found = state.Enter(device, &code);
  if (!found) return code;
  if (scope != nullptr && *scope != 0 && std::strcmp(scope, "global") != 0) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED, std::string("memory of the scope '") + scope +
                                                   "' is not supported; the usual one is global");
  }
  if (alignment > found->properties.alignment) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED, "an alignment of " + std::to_string(alignment) +
                                                   " bytes; CUDA's memory has " +
                                                   std::to_string(found->properties.alignment));
  }
  const std::size_t size = bytes == 0 ? 1 : bytes;
  CUdeviceptr pointer = 0;
  if (found->has_pools) {
    code = CodeOf(state.driver, "cuMemAllocAsync",
                  state.driver.cuMemAllocAsync(&pointer, size, StreamOf(stream)));
  } else {
    code = CodeOf(state.driver, "cuMemAlloc", state.driver.cuMemAlloc(&pointer, size));
  }
  *block = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
  return code;
}

int Deallocate(void* context, DLDevice device, void* block, void* stream) {
  State& state = State::Of(context);
  const Entered found = state.EnterToRelease(device);
  if (!found) return REWIRE_DEVICE_FAILED;
  // The block is given back even where the driver cannot wait: it has failed, then, and so has the run.
  (void)WaitForAttached(state, stream);
  return found->has_pools ? CodeOf(state.driver, "cuMemFreeAsync",
                                   state.driver.cuMemFreeAsync(AddressOf(block), StreamOf(stream)))
                          : CodeOf(state.driver, "cuMemFree", state.driver.cuMemFree(AddressOf(block)));
}

int AllocateHost(void* context, DLDevice device, std::uint64_t bytes, void** block) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  const PinnedBlocks::Place place = state.pinned.Take(bytes);
  *block = place.block;
  if (*block != nullptr) return code;
  (void)FreePinned(state, place.excess);
  code = CodeOf(state.driver, "cuMemHostAlloc",
                state.driver.cuMemHostAlloc(block, bytes == 0 ? 1 : bytes, kHostAllocPortable));
  if (code == REWIRE_DEVICE_OK)
    state.pinned.Add(*block, bytes);
  else
    state.pinned.Abandon(bytes);
  return code;
}

int DeallocateHost(void* context, DLDevice device, void* block) {
  State& state = State::Of(context);
  const Entered entered = state.EnterToRelease(device);
  if (!entered) return REWIRE_DEVICE_FAILED;
  return FreePinned(state, state.pinned.Give(block));
}

int IsPinned(void* context, DLDevice, const void* memory, std::uint64_t bytes, std::int32_t* pinned) {
  const CudaDriver& driver = State::Of(context).driver;
  // The type of memory that the driver does not know stays 0. It pins whole ranges, so the ends tell.
  *pinned = 1;
  for (const std::uint64_t offset : {std::uint64_t{0}, bytes == 0 ? 0 : bytes - 1}) {
    unsigned type = 0;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* answer = &type;
    const int code =
        CodeOf(driver, "cuPointerGetAttributes",
               driver.cuPointerGetAttributes(1, &attribute, &answer, AddressOf(memory) + offset));
    if (code != REWIRE_DEVICE_OK) return code;
    if (type != CU_MEMORYTYPE_HOST) *pinned = 0;
  }
  return REWIRE_DEVICE_OK;
}

int Memory(void* context, DLDevice device, std::uint64_t* free_bytes, std::uint64_t* all_bytes) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  std::size_t free = 0;
  std::size_t all = 0;
  code = CodeOf(state.driver, "cuMemGetInfo", state.driver.cuMemGetInfo(&free, &all));
  *free_bytes = free;
  *all_bytes = all;
  return code;
}

int Copy(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
         std::uint64_t bytes, void* stream) {
  State& state = State::Of(context);
  if (bytes == 0) return REWIRE_DEVICE_OK;
  const bool from_host = IsHostDevice(from_device);
  const bool to_host = IsHostDevice(to_device);
  int code = REWIRE_DEVICE_OK;
  const Entered own = state.Enter(to_host ? from_device : to_device, &code);
  if (!own) return code;
  const CudaDriver& driver = state.driver;
  const CUstream work = StreamOf(stream);
  if (from_host) {
    return CodeOf(driver, "cuMemcpyHtoDAsync", driver.cuMemcpyHtoDAsync(AddressOf(to), from, bytes, work));
  }
  if (to_host) {
    return CodeOf(driver, "cuMemcpyDtoHAsync", driver.cuMemcpyDtoHAsync(to, AddressOf(from), bytes, work));
  }
  if (from_device.device_id == to_device.device_id) {
    return CodeOf(driver, "cuMemcpyDtoDAsync",
                  driver.cuMemcpyDtoDAsync(AddressOf(to), AddressOf(from), bytes, work));
  }
  const Device* other = state.Find(from_device, &code);
  if (other == nullptr) return code;
  return CodeOf(
      driver, "cuMemcpyPeerAsync",
      driver.cuMemcpyPeerAsync(AddressOf(to), own->context, AddressOf(from), other->context, bytes, work));
}

int Fill(void* context, DLDevice device, void* to, std::uint64_t bytes, const void* pattern,
         std::uint32_t pattern_bytes, void* stream) {
  State& state = State::Of(context);
  if (bytes == 0) return REWIRE_DEVICE_OK;
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  const CudaDriver& driver = state.driver;
  const CUdeviceptr address = AddressOf(to);
  switch (pattern_bytes) {
    case 1: {
      std::uint8_t value = 0;
      std::memcpy(&value, pattern, 1);
      return CodeOf(driver, "cuMemsetD8Async",
                    driver.cuMemsetD8Async(address, value, bytes, StreamOf(stream)));
    }
    case 2: {
      std::uint16_t value = 0;
      std::memcpy(&value, pattern, 2);
      return CodeOf(driver, "cuMemsetD16Async",
                    driver.cuMemsetD16Async(address, value, bytes / 2, StreamOf(stream)));
    }
    case 4: {
      std::uint32_t value = 0;
      std::memcpy(&value, pattern, 4);
      return CodeOf(driver, "cuMemsetD32Async",
                    driver.cuMemsetD32Async(address, value, bytes / 4, StreamOf(stream)));
    }
    default:
      return FailWith(REWIRE_DEVICE_UNSUPPORTED,
                      "a pattern of " + std::to_string(pattern_bytes) + " bytes; 1, 2 or 4 expected");
  }
}

}  // namespace

int FreePinned(const State& state, const std::vector<void*>& blocks) {
  int failed = REWIRE_DEVICE_OK;
  for (void* block : blocks) {
    const int code = CodeOf(state.driver, "cuMemFreeHost", state.driver.cuMemFreeHost(block));
    if (code != REWIRE_DEVICE_OK) failed = code;
  }
  return failed;
}

void AddMemory(RewireDeviceApi* api) {
  api->allocate = Allocate;
  api->deallocate = Deallocate;
  api->allocate_host = AllocateHost;
  api->deallocate_host = DeallocateHost;
  api->is_pinned = IsPinned;
  api->memory = Memory;
  api->copy = Copy;
  api->fill = Fill;
}

}  // namespace rewire::cuda

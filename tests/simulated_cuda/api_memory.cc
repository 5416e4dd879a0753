// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: device memory, its pools, pinned host memory, questions about addresses.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "rewire/tests/simulated_cuda/simulator.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

Device* DeviceOfPool(const Call& call, CUmemoryPool pool) {
  for (const auto& device : call.simulator().devices)
    if (reinterpret_cast<CUmemoryPool>(&device->memory) == pool) return device.get();
  return nullptr;
}

// When a freed block's turn comes on its stream. The guard behind it may have been written.
CUresult EndContents(Device* device, std::uint64_t address, std::size_t bytes) {
  if (!device->memory.PoisonFreed(address, bytes)) {
    Simulator& simulator = Simulator::The();
    const std::lock_guard lock(simulator.mutex);
    simulator.Violation(fmt::format("an allocation of {} bytes on device {} was written behind its end",
                                    bytes, device->index));
  }
  return CUDA_SUCCESS;
}

CUresult AllocateInOrder(Call& call, CUdeviceptr* pointer, std::size_t bytes, Device* owner,
                         CUstream handle) {
  Simulator& simulator = call.simulator();
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  DeviceMemory& memory = owner->memory;
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    // The graph keeps the memory for all its runs.
    *pointer = memory.Allocate(bytes, false, {}, {}, nullptr);
    if (*pointer == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    memory.PoisonFresh(*pointer, bytes);
    stream->capture->graph->allocations.push_back(*pointer);
    return CUDA_SUCCESS;
  }
  Timeline& timeline = *stream->timeline;
  Clock before = timeline.clock;
  before.Join(simulator.host_clock());
  std::vector<Moment> wait_for;
  *pointer = memory.Allocate(bytes, true, {timeline.index, timeline.last + 1}, before, &wait_for);
  if (*pointer == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const Moment moment : wait_for) {
    Clock clock;
    clock.Add(moment);
    simulator.OrderAfter(stream, moment, clock, 0);
  }
  Work work;
  work.run = [&memory, address = *pointer, bytes] {
    memory.PoisonFresh(address, bytes);
    return CUDA_SUCCESS;
  };
  return simulator.Enqueue(stream, std::move(work));
}

// False if nothing is known of the address.
bool Describe(Simulator& simulator, void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  Device* device = simulator.DeviceOf(pointer);
  const bool pinned = device == nullptr && simulator.IsPinned(pointer, 1);
  DeviceMemory::Blocks::iterator block;
  if (device != nullptr) {
    block = device->memory.Find(pointer);
    if (block == device->memory.blocks().end()) return false;
  }
  const bool known = device != nullptr || pinned;
  std::uint64_t base = 0;
  std::size_t bytes = 0;
  if (device != nullptr) {
    base = block->first;
    bytes = block->second.bytes;
  } else if (pinned) {
    const auto range = std::prev(simulator.host_ranges.upper_bound(pointer));
    base = range->first;
    bytes = range->second.bytes;
  }
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) =
          device != nullptr ? reinterpret_cast<CUcontext>(&device->context) : nullptr;
      return known;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) = device != nullptr ? unsigned{CU_MEMORYTYPE_DEVICE}
                                       : pinned          ? unsigned{CU_MEMORYTYPE_HOST}
                                                         : 0;
      return known;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = known ? pointer : 0;
      return known;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(value) = pinned ? reinterpret_cast<void*>(pointer) : nullptr;
      return pinned;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(value) = device != nullptr ? block->second.id : 0;
      return known;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = 0;
      return known;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = device != nullptr ? device->index : pinned ? 0 : -2;
      return known;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = base;
      return known;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(value) = bytes;
      return known;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(value) = known ? 1 : 0;
      return known;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(value) = device != nullptr && block->second.from_pool
                                               ? reinterpret_cast<CUmemoryPool>(&device->memory)
                                               : nullptr;
      return known;
  }
  return false;
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  Call call("cuMemAlloc");
  if (call.Fails()) return call.result();
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.ForbiddenByCapture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  DeviceMemory& memory = call.device()->memory;
  *pointer = memory.Allocate(bytes, false, {}, {}, nullptr);
  if (*pointer == 0) {
    memory.Trim(0, call.simulator().host_clock());
    *pointer = memory.Allocate(bytes, false, {}, {}, nullptr);
  }
  if (*pointer == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  memory.PoisonFresh(*pointer, bytes);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Call call("cuMemFree", Call::kRelease);
  if (pointer == 0) return call.Returns(CUDA_SUCCESS);
  Simulator& simulator = call.simulator();
  Device* device = simulator.DeviceOf(pointer);
  if (device == nullptr || device->memory.blocks().count(pointer) == 0) {
    simulator.Violation(fmt::format("cuMemFree: {:#x} is no allocation", pointer));
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.ForbiddenByCapture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  // A real driver waits for the device here too.
  simulator.WaitForDevice(call.lock(), device);
  const auto block = device->memory.blocks().find(pointer);
  if (block == device->memory.blocks().end()) return CUDA_ERROR_INVALID_VALUE;
  if (!device->memory.PoisonFreed(pointer, block->second.bytes))
    simulator.Violation(fmt::format("an allocation of {} bytes on device {} was written behind its end",
                                    block->second.bytes, device->index));
  device->memory.Free(block, {});
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  Call call("cuMemAllocAsync");
  if (call.Fails()) return call.result();
  return AllocateInOrder(call, pointer, bytes, call.device(), stream);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes,
                                                         CUmemoryPool pool, CUstream stream) {
  Call call("cuMemAllocFromPoolAsync");
  if (call.Fails()) return call.result();
  Device* owner = DeviceOfPool(call, pool);
  if (owner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AllocateInOrder(call, pointer, bytes, owner, stream);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  Call call("cuMemFreeAsync", Call::kRelease);
  if (pointer == 0) return call.Returns(CUDA_SUCCESS);
  Simulator& simulator = call.simulator();
  Device* device = simulator.DeviceOf(pointer);
  Stream* stream = simulator.FindStream(handle, call.device());
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device == nullptr || device->memory.blocks().count(pointer) == 0) {
    simulator.Violation(fmt::format("cuMemFreeAsync: {:#x} is no allocation", pointer));
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture != nullptr) return call.Returns(CUDA_SUCCESS);  // the graph keeps it
  const auto block = device->memory.blocks().find(pointer);
  const std::size_t bytes = block->second.bytes;
  Clock before = stream->timeline->clock;
  before.Join(simulator.host_clock());
  Clock users = block->second.used;
  users.Add(block->second.made);
  Work work;
  work.missed = users.Beyond(before);
  if (!work.missed.empty()) {
    simulator.Violation(
        fmt::format("cuMemFreeAsync: another stream may still use an allocation of {} bytes on device {}",
                    bytes, device->index));
  }
  work.run = [device, pointer, bytes] { return EndContents(device, pointer, bytes); };
  const CUresult result = simulator.Enqueue(stream, std::move(work));
  device->memory.Free(device->memory.blocks().find(pointer), stream->timeline->now());
  return call.Returns(result);
}

REWIRE_SIMULATED_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call("cuDeviceGetDefaultMemPool", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const auto& devices = call.simulator().devices;
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(&devices[static_cast<std::size_t>(device)]->memory);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                                       void* value) {
  Call call("cuMemPoolSetAttribute", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  Device* device = DeviceOfPool(call, pool);
  if (device == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&device->pool_threshold, value, sizeof device->pool_threshold);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      device->memory.reserved_high = device->memory.reserved();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      device->memory.pool_used_high = device->memory.pool_used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                                       void* value) {
  Call call("cuMemPoolGetAttribute", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const Device* device = DeviceOfPool(call, pool);
  if (device == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t number = 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      number = device->pool_threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      number = device->memory.reserved();
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      number = device->memory.reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      number = device->memory.pool_used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      number = device->memory.pool_used_high;
      break;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = 1;
      return CUDA_SUCCESS;
  }
  std::memcpy(value, &number, sizeof number);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes) {
  Call call("cuMemPoolTrimTo", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  Device* device = DeviceOfPool(call, pool);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  device->memory.Trim(bytes, call.simulator().host_clock());
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map,
                                                    std::size_t count) {
  Call call("cuMemPoolSetAccess", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const Device* device = DeviceOfPool(call, pool);
  if (device == nullptr || (map == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t id = static_cast<std::size_t>(map[i].location.id);
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || id >= call.simulator().devices.size())
      return CUDA_ERROR_INVALID_VALUE;
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      call.simulator().devices[id]->peers.insert(device->index);
  }
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  Call call("cuMemHostAlloc");
  if (call.Fails()) return call.result();
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.ForbiddenByCapture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  call.simulator().host_ranges[reinterpret_cast<std::uint64_t>(memory)] = {bytes, true};
  *pointer = memory;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemFreeHost(void* pointer) {
  Call call("cuMemFreeHost", Call::kRelease);
  Simulator& simulator = call.simulator();
  const auto found = simulator.host_ranges.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == simulator.host_ranges.end() || !found->second.allocated) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& device : simulator.devices) simulator.WaitForDevice(call.lock(), device.get());
  munmap(pointer, found->second.bytes);
  simulator.host_ranges.erase(found);
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned) {
  Call call("cuMemHostRegister");
  if (call.Fails()) return call.result();
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Simulator& simulator = call.simulator();
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (simulator.DeviceOf(address) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto next = simulator.host_ranges.lower_bound(address);
  if (simulator.IsPinned(address, 1) ||
      (next != simulator.host_ranges.end() && next->first < address + bytes))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  simulator.host_ranges[address] = {bytes, false};
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  Call call("cuMemHostUnregister", Call::kRelease);
  Simulator& simulator = call.simulator();
  const auto found = simulator.host_ranges.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == simulator.host_ranges.end() || found->second.allocated)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  for (const auto& device : simulator.devices) simulator.WaitForDevice(call.lock(), device.get());
  simulator.host_ranges.erase(found);
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  Call call("cuMemHostGetDevicePointer");
  if (call.Fails()) return call.result();
  const auto address = reinterpret_cast<std::uint64_t>(host);
  if (!call.simulator().IsPinned(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  *device = address;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Call call("cuMemGetInfo");
  if (call.Fails()) return call.result();
  const DeviceMemory& memory = call.device()->memory;
  *total = memory.total();
  *free = memory.total() - std::min(memory.total(), memory.taken());
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes,
                                                         CUdeviceptr pointer) {
  Call call("cuMemGetAddressRange");
  if (call.Fails()) return call.result();
  Device* device = call.simulator().DeviceOf(pointer);
  if (device == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto block = device->memory.Find(pointer);
  if (block == device->memory.blocks().end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = block->first;
  if (bytes != nullptr) *bytes = block->second.bytes;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute,
                                                       CUdeviceptr pointer) {
  Call call("cuPointerGetAttribute", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  return Describe(call.simulator(), value, attribute, pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                                        void** values, CUdeviceptr pointer) {
  Call call("cuPointerGetAttributes", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  // The answers for an address that nobody knows are zero, and that is no failure.
  for (unsigned i = 0; i < count; ++i) Describe(call.simulator(), values[i], attributes[i], pointer);
  return CUDA_SUCCESS;
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)

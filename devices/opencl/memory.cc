// SPDX-License-Identifier: Apache-2.0
//
// Blocks, imported handles, pinned memory, copies and fills.
#include <cstring>
#include <memory>
#include <string>

#include "rewire/devices/opencl/state.h"
#include "rewire/vm/kernel/device_type.h"

namespace rewire::opencl {
namespace {

constexpr std::uint64_t kMostAlignment = 4096;

// A buffer and the offset that an address means; false, with the thread's words set, if there is none or it
// has not so many bytes from there on.
struct Place {
  Buffer* buffer;
  std::uint64_t offset;
};
bool FindPlace(State& state, const void* address, std::uint64_t bytes, Place* place) {
  place->buffer = state.addresses.Find(address);
  place->offset = AddressSpace::OffsetOf(address);
  if (place->buffer == nullptr) {
    FailWith(REWIRE_DEVICE_FAILED, "the address is not one of a live OpenCL buffer");
    return false;
  }
  if (place->offset <= place->buffer->bytes && bytes <= place->buffer->bytes - place->offset) return true;
  FailWith(REWIRE_DEVICE_FAILED, std::to_string(bytes) + " bytes at offset " + std::to_string(place->offset) +
                                     " reach beyond the buffer, which has " +
                                     std::to_string(place->buffer->bytes) + " bytes");
  return false;
}

int AddBuffer(State& state, cl_mem memory, std::uint64_t bytes, void** address, Buffer** added) {
  auto buffer = std::make_unique<Buffer>();
  buffer->memory = memory;
  buffer->bytes = bytes;
  *address = state.addresses.Add(buffer.get());
  if (*address == nullptr) {
    state.driver.clReleaseMemObject(memory);
    return FailWith(REWIRE_DEVICE_NO_MEMORY, "too many OpenCL buffers are alive");
  }
  *added = buffer.release();
  return REWIRE_DEVICE_OK;
}

// The driver keeps the memory itself until all work that was given before is done.
void DropBuffer(State& state, Buffer* buffer) {
  state.addresses.Remove(buffer);
  for (const auto& [place, memory] : buffer->parts) state.driver.clReleaseMemObject(memory);
  state.driver.clReleaseMemObject(buffer->memory);
  delete buffer;
}

int Allocate(void* context, DLDevice device, std::uint64_t bytes, std::uint64_t alignment, const char* scope,
             void* /*stream*/, void** block) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  if (scope != nullptr && *scope != 0 && std::strcmp(scope, "global") != 0) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED, std::string("memory of the scope '") + scope +
                                                   "' is not supported; the usual one is global");
  }
  if (alignment > kMostAlignment) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED, "an alignment of " + std::to_string(alignment) +
                                                   " bytes; OpenCL buffers have at most " +
                                                   std::to_string(kMostAlignment));
  }
  if (bytes > found->properties.largest_block) {
    return FailWith(REWIRE_DEVICE_NO_MEMORY, "a block of " + std::to_string(bytes) +
                                                 " bytes; the device allows at most " +
                                                 std::to_string(found->properties.largest_block));
  }
  cl_int error = CL_SUCCESS;
  const cl_mem memory =
      state.driver.clCreateBuffer(found->context, CL_MEM_READ_WRITE, bytes == 0 ? 1 : bytes, nullptr, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateBuffer", error);
  Buffer* added = nullptr;
  return AddBuffer(state, memory, bytes, block, &added);
}

int Deallocate(void* context, DLDevice, void* block, void* /*stream*/) {
  State& state = State::Of(context);
  Buffer* buffer = state.addresses.Find(block);
  if (buffer == nullptr)
    return FailWith(REWIRE_DEVICE_FAILED, "the block is not one of a live OpenCL buffer");
  DropBuffer(state, buffer);
  return REWIRE_DEVICE_OK;
}

int AllocateHost(void* context, DLDevice device, std::uint64_t bytes, void** block) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  cl_int error = CL_SUCCESS;
  const std::size_t size = bytes == 0 ? 1 : bytes;
  const cl_mem memory = state.driver.clCreateBuffer(found->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                                    size, nullptr, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateBuffer", error);
  void* mapped = state.driver.clEnqueueMapBuffer(found->queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                 size, 0, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) {
    state.driver.clReleaseMemObject(memory);
    return FailIn("clEnqueueMapBuffer", error);
  }
  const std::lock_guard<std::mutex> lock(state.pinned_mutex);
  state.pinned[mapped] = memory;
  *block = mapped;
  return REWIRE_DEVICE_OK;
}

int DeallocateHost(void* context, DLDevice device, void* block) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  const std::lock_guard<std::mutex> lock(state.pinned_mutex);
  const auto entry = state.pinned.find(block);
  if (entry == state.pinned.end()) return FailWith(REWIRE_DEVICE_FAILED, "the block is not pinned memory");
  state.driver.clEnqueueUnmapMemObject(found->queue, entry->second, block, 0, nullptr, nullptr);
  state.driver.clReleaseMemObject(entry->second);
  state.pinned.erase(entry);
  return REWIRE_DEVICE_OK;
}

// A CPU reads and writes all memory of the host itself. For other devices it is what AllocateHost has given.
int IsPinned(void* context, DLDevice device, const void* memory, std::uint64_t bytes, std::int32_t* pinned) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  cl_device_type type = 0;
  const cl_int error = state.driver.clGetDeviceInfo(found->id, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
  if (error != CL_SUCCESS) return FailIn("clGetDeviceInfo", error);
  *pinned = (type & CL_DEVICE_TYPE_CPU) != 0 ? 1 : 0;
  const std::lock_guard<std::mutex> lock(state.pinned_mutex);
  for (const auto& [block, object] : state.pinned) {
    std::size_t size = 0;
    if (state.driver.clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof(size), &size, nullptr) != CL_SUCCESS)
      continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    if (at >= begin && bytes <= size && at - begin <= size - bytes) *pinned = 1;
  }
  return REWIRE_DEVICE_OK;
}

int ImportHandle(void* context, DLDevice, void* handle, std::uint64_t bytes, void** address) {
  State& state = State::Of(context);
  if (AddressSpace::IsAddress(handle)) {
    Place place;
    if (!FindPlace(state, handle, bytes, &place)) return REWIRE_DEVICE_FAILED;
    *address = handle;
    const std::lock_guard<std::mutex> lock(state.imported_mutex);
    ++place.buffer->users;
    return REWIRE_DEVICE_OK;
  }
  const auto memory = static_cast<cl_mem>(handle);
  std::size_t size = 0;
  cl_int error = memory == nullptr
                     ? CL_INVALID_MEM_OBJECT
                     : state.driver.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(size), &size, nullptr);
  if (error != CL_SUCCESS) return FailIn("clGetMemObjectInfo", error);
  if (size < bytes) {
    return FailWith(REWIRE_DEVICE_FAILED, "the cl_mem has " + std::to_string(size) + " bytes, " +
                                              std::to_string(bytes) + " are needed");
  }
  const std::lock_guard<std::mutex> lock(state.imported_mutex);
  const auto known = state.imported.find(memory);
  if (known != state.imported.end()) {
    ++known->second->users;
    *address = reinterpret_cast<void*>(std::uintptr_t{1} << 62 | std::uintptr_t{known->second->number}
                                                                     << AddressSpace::kOffsetBits);
    return REWIRE_DEVICE_OK;
  }
  error = state.driver.clRetainMemObject(memory);
  if (error != CL_SUCCESS) return FailIn("clRetainMemObject", error);
  Buffer* added = nullptr;
  const int code = AddBuffer(state, memory, size, address, &added);
  if (code == REWIRE_DEVICE_OK) state.imported[memory] = added;
  return code;
}

int ReleaseHandle(void* context, DLDevice, void* address) {
  State& state = State::Of(context);
  const std::lock_guard<std::mutex> lock(state.imported_mutex);
  Buffer* buffer = state.addresses.Find(address);
  if (buffer == nullptr)
    return FailWith(REWIRE_DEVICE_FAILED, "the address is not one of an imported handle");
  if (--buffer->users > 0) return REWIRE_DEVICE_OK;
  state.imported.erase(buffer->memory);
  DropBuffer(state, buffer);
  return REWIRE_DEVICE_OK;
}

int FindHandle(void* context, DLDevice, const void* address, void** handle, std::uint64_t* offset) {
  Place place;
  if (!FindPlace(State::Of(context), address, 0, &place)) return REWIRE_DEVICE_FAILED;
  *handle = place.buffer->memory;
  *offset = place.offset;
  return REWIRE_DEVICE_OK;
}

// Gives the command to the queue, or to the recording of what the queue is given.
int Give(State& state, cl_command_queue queue, const Command& command) {
  if (Recording* recording = state.recordings.Find(queue)) {
    return recording->Add(command);
  }
  return command.Enqueue(state.driver, queue);
}

int Copy(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
         std::uint64_t bytes, void* stream) {
  State& state = State::Of(context);
  if (bytes == 0) return REWIRE_DEVICE_OK;
  const bool from_host = IsHostDevice(from_device);
  const bool to_host = IsHostDevice(to_device);
  const DLDevice where = to_host ? from_device : to_device;
  if (state.Find(where) == nullptr) return REWIRE_DEVICE_FAILED;
  Place source{};
  Place target{};
  if (!from_host && !FindPlace(state, from, bytes, &source)) return REWIRE_DEVICE_FAILED;
  if (!to_host && !FindPlace(state, to, bytes, &target)) return REWIRE_DEVICE_FAILED;
  Command command;
  command.bytes = bytes;
  if (!from_host) {
    command.from = source.buffer->memory;
    command.from_offset = source.offset;
  }
  if (!to_host) {
    command.to = target.buffer->memory;
    command.to_offset = target.offset;
  }
  if (from_host) {
    command.kind = Command::Kind::kWrite;
    command.host = const_cast<void*>(from);  // it is only read
  } else if (to_host) {
    command.kind = Command::Kind::kRead;
    command.host = to;
  } else {
    const Device* source_device = state.Find(from_device);
    if (source_device == nullptr) return REWIRE_DEVICE_FAILED;
    if (source_device->context != state.Find(to_device)->context) {
      return FailWith(REWIRE_DEVICE_UNSUPPORTED, "the two devices belong to different OpenCL platforms");
    }
    command.kind = Command::Kind::kCopy;
  }
  return Give(state, state.QueueOf(where, stream), command);
}

int Fill(void* context, DLDevice device, void* to, std::uint64_t bytes, const void* pattern,
         std::uint32_t pattern_bytes, void* stream) {
  State& state = State::Of(context);
  if (bytes == 0) return REWIRE_DEVICE_OK;
  Command command;
  if (pattern_bytes > sizeof(command.pattern)) {
    return FailWith(REWIRE_DEVICE_FAILED, "a pattern of " + std::to_string(pattern_bytes) +
                                              " bytes; at most " + std::to_string(sizeof(command.pattern)) +
                                              " are possible");
  }
  Place target{};
  if (state.Find(device) == nullptr || !FindPlace(state, to, bytes, &target)) return REWIRE_DEVICE_FAILED;
  command.kind = Command::Kind::kFill;
  command.to = target.buffer->memory;
  command.to_offset = target.offset;
  command.bytes = bytes;
  command.pattern_bytes = pattern_bytes;
  std::memcpy(command.pattern, pattern, pattern_bytes);
  return Give(state, state.QueueOf(device, stream), command);
}

}  // namespace

void AddMemory(RewireDeviceApi* api) {
  api->allocate = Allocate;
  api->deallocate = Deallocate;
  api->allocate_host = AllocateHost;
  api->deallocate_host = DeallocateHost;
  api->is_pinned = IsPinned;
  api->import_handle = ImportHandle;
  api->release_handle = ReleaseHandle;
  api->find_handle = FindHandle;
  api->copy = Copy;
  api->fill = Fill;
}

}  // namespace rewire::opencl

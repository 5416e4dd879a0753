// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace rewire::opencl {
namespace {

constexpr std::size_t kMostParts = 256;  // sub-buffers that a buffer keeps

// The buffer that begins at an address: the whole one, or a part of it, which stays as long as the buffer.
int PartAt(State& state, const Device& device, const void* address, cl_mem* memory) {
  Buffer* buffer = state.addresses.Find(address);
  if (buffer == nullptr) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument's address is not one of a live OpenCL buffer");
  }
  const std::uint64_t offset = AddressSpace::OffsetOf(address);
  *memory = buffer->memory;
  if (offset == 0) return REWIRE_DEVICE_OK;
  if (offset >= buffer->bytes || offset % device.properties.part_alignment != 0) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument lies " + std::to_string(offset) +
                                              " bytes into its buffer of " + std::to_string(buffer->bytes) +
                                              "; the device needs a multiple of " +
                                              std::to_string(device.properties.part_alignment) + " bytes");
  }
  const std::lock_guard<std::mutex> lock(buffer->mutex);
  for (const Buffer::Part& part : buffer->parts) {
    if (part.offset == offset) {
      *memory = part.memory;
      return REWIRE_DEVICE_OK;
    }
  }
  if (buffer->parts.size() == kMostParts) {
    // Work that was given before keeps the part itself.
    state.driver.clReleaseMemObject(buffer->parts.front().memory);
    buffer->parts.erase(buffer->parts.begin());
  }
  const cl_buffer_region region{offset, buffer->bytes - offset};
  cl_int error = CL_SUCCESS;
  *memory = state.driver.clCreateSubBuffer(buffer->memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateSubBuffer", error);
  buffer->parts.push_back({offset, *memory});
  return REWIRE_DEVICE_OK;
}

int SetArgument(State& state, const Device& device, cl_kernel kernel, cl_uint index,
                const RewireLaunchArgument& argument) {
  cl_int error = CL_SUCCESS;
  switch (argument.kind) {
    case REWIRE_LAUNCH_ADDRESS: {
      cl_mem memory = nullptr;
      if (argument.u.address != nullptr) {
        const int code = PartAt(state, device, argument.u.address, &memory);
        if (code != REWIRE_DEVICE_OK) return code;
      }
      error = state.driver.clSetKernelArg(kernel, index, sizeof(memory), &memory);
      break;
    }
    case REWIRE_LAUNCH_VALUE:
      error = state.driver.clSetKernelArg(kernel, index, argument.bytes, argument.u.value);
      break;
    case REWIRE_LAUNCH_SHARED:
      error = state.driver.clSetKernelArg(kernel, index, argument.bytes, nullptr);
      break;
    default:
      return FailWith(REWIRE_DEVICE_FAILED, "argument " + std::to_string(index) + " is of unknown kind " +
                                                std::to_string(argument.kind));
  }
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  return FailWith(REWIRE_DEVICE_FAILED,
                  "clSetKernelArg: " + ErrorName(error) + " for argument " + std::to_string(index));
}

std::uint64_t HashOf(const std::uint64_t* words, std::size_t count) {
  // The products do not wait for each other. What collides is compared anyway.
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) hash += (words[i] + i) * (0x9E3779B97F4A7C15u + 2 * i);
  return hash ^ hash >> 23 ^ hash >> 47;
}

}  // namespace

Kernel* Kernel::Make(State& state, cl_program program, const char* name) {
  std::unique_ptr<Kernel> made(new Kernel(state, program, name));
  made->bound_.resize(kObjects);
  cl_int error = CL_SUCCESS;
  cl_kernel first = state.driver.clCreateKernel(program, name, &error);
  if (error != CL_SUCCESS) {
    FailWith(REWIRE_DEVICE_FAILED,
             "clCreateKernel: " + ErrorName(error) + ", the module has no kernel '" + name + "'");
    return nullptr;
  }
  state.driver.clGetKernelInfo(first, CL_KERNEL_NUM_ARGS, sizeof(made->arguments_), &made->arguments_,
                               nullptr);
  made->bound_[0].object = first;
  return made.release();
}

Kernel::~Kernel() {
  for (const Bound& bound : bound_) {
    if (bound.object != nullptr) state_.driver.clReleaseKernel(bound.object);
  }
}

// A buffer is told by its serial number, which no other buffer ever has. False if there are too many words.
bool Kernel::Describe(const RewireLaunch& launch, Words* given) const {
  std::uint64_t* next = given->words;
  const std::uint64_t* const end = given->words + kMostWords;
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const RewireLaunchArgument& argument = launch.arguments[i];
    const bool value = argument.kind == REWIRE_LAUNCH_VALUE;
    const std::size_t words = 2 + (value ? argument.bytes / 8 + 1 : 0);
    if (words > static_cast<std::size_t>(end - next)) return false;
    next[0] = std::uint64_t{argument.kind} << 32 | argument.bytes;
    if (argument.kind == REWIRE_LAUNCH_ADDRESS) {
      const Buffer* buffer = state_.addresses.Find(argument.u.address);
      // Parts of buffers come and go, and their handles are used again.
      if (buffer == nullptr || AddressSpace::OffsetOf(argument.u.address) != 0) return false;
      next[1] = buffer->serial;
    } else {
      next[1] = 0;
      if (value) {
        next[words - 1] = 0;
        std::memcpy(next + 1, argument.u.value, argument.bytes);
      }
    }
    next += words;
  }
  given->count = static_cast<std::size_t>(next - given->words);
  return true;
}

int Kernel::Bind(const Device& device, const RewireLaunch& launch, Bound* bound) {
  if (bound->object == nullptr) {
    cl_int error = CL_SUCCESS;
    bound->object = state_.driver.clCreateKernel(program_, name_.c_str(), &error);
    if (error != CL_SUCCESS) {
      bound->object = nullptr;
      return FailIn("clCreateKernel", error);
    }
  }
  bound->words = 0;
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const int code = SetArgument(state_, device, bound->object, i, launch.arguments[i]);
    if (code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

int Kernel::Record(const Device& device, const RewireLaunch& launch, Recording* recording) {
  Command command;
  std::vector<cl_mem> memory(launch.argument_count);
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const RewireLaunchArgument& argument = launch.arguments[i];
    if (argument.kind != REWIRE_LAUNCH_ADDRESS || argument.u.address == nullptr) continue;
    const int code = PartAt(state_, device, argument.u.address, &memory[i]);
    if (code != REWIRE_DEVICE_OK) return code;
  }
  Bound own;
  if (const int code = Bind(device, launch, &own); code != REWIRE_DEVICE_OK) {
    if (own.object != nullptr) state_.driver.clReleaseKernel(own.object);
    return code;
  }
  command.kernel = own.object;
  for (int i = 0; i < 3; ++i) {
    command.local[i] = launch.group_threads[i];
    command.global[i] = std::size_t{launch.groups[i]} * launch.group_threads[i];
  }
  recording->Add(command, memory);
  return REWIRE_DEVICE_OK;
}

int Kernel::Launch(DLDevice device, const RewireLaunch& launch, void* stream) {
  if (launch.argument_count != arguments_) {
    return FailWith(REWIRE_DEVICE_FAILED, "kernel '" + name_ + "' takes " + std::to_string(arguments_) +
                                              " arguments, " + std::to_string(launch.argument_count) +
                                              " are given");
  }
  if (Recording* recording = state_.recordings.Find(state_.QueueOf(device, stream))) {
    return Record(*state_.Find(device), launch, recording);
  }
  std::size_t global[3];
  std::size_t local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = launch.group_threads[i];
    global[i] = std::size_t{launch.groups[i]} * launch.group_threads[i];
  }
  Words given;
  const bool comparable = Describe(launch, &given);
  const std::lock_guard<std::mutex> lock(mutex_);
  Bound& bound = bound_[comparable ? HashOf(given.words, given.count) % kObjects : 0];
  const bool same =
      comparable && bound.words == given.count &&
      std::memcmp(bound.arguments.get(), given.words, given.count * sizeof(given.words[0])) == 0;
  if (!same) {
    const int code = Bind(*state_.Find(device), launch, &bound);
    if (code != REWIRE_DEVICE_OK) return code;
    if (comparable) {
      bound.arguments = std::make_unique<std::uint64_t[]>(given.count);
      std::copy(given.words, given.words + given.count, bound.arguments.get());
      bound.words = given.count;
    }
  }
  const cl_int error = state_.driver.clEnqueueNDRangeKernel(state_.QueueOf(device, stream), bound.object, 3,
                                                            nullptr, global, local, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  FailIn("clEnqueueNDRangeKernel", error);
  return FailWith(REWIRE_DEVICE_FAILED, std::string(LastWords()) + " for kernel '" + name_ + "'");
}

}  // namespace rewire::opencl

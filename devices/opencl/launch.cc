// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace rewire::opencl {
namespace {

// Sub-buffers that a buffer keeps. An arena needs one for each place in it.
constexpr std::size_t kMostParts = 4096;

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

// The memory object that begins at an address: the whole buffer, or a part of it. A part stays as long as its
// buffer. Where the buffer has too many of them, the part is `temporary`, and the caller releases it.
int Kernel::Find(const Device& device, const void* address, Found* found) const {
  *found = {};
  if (address == nullptr) return REWIRE_DEVICE_OK;
  Buffer* buffer = state_.addresses.Find(address);
  if (buffer == nullptr) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument's address is not one of a live OpenCL buffer");
  }
  const std::uint64_t offset = AddressSpace::OffsetOf(address);
  if (offset == 0) {
    *found = {buffer->memory, buffer->serial, false};
    return REWIRE_DEVICE_OK;
  }
  if (offset >= buffer->bytes || offset % device.properties.part_alignment != 0) {
    return FailWith(REWIRE_DEVICE_FAILED, "an argument lies " + std::to_string(offset) +
                                              " bytes into its buffer of " + std::to_string(buffer->bytes) +
                                              "; the device needs a multiple of " +
                                              std::to_string(device.properties.part_alignment) + " bytes");
  }
  const std::lock_guard<std::mutex> lock(buffer->mutex);
  if (const auto known = buffer->parts.find(offset); known != buffer->parts.end()) {
    *found = {known->second.memory, known->second.serial, false};
    return REWIRE_DEVICE_OK;
  }
  const cl_buffer_region region{offset, buffer->bytes - offset};
  cl_int error = CL_SUCCESS;
  const cl_mem memory =
      state_.driver.clCreateSubBuffer(buffer->memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  if (error != CL_SUCCESS) return FailIn("clCreateSubBuffer", error);
  *found = {memory, state_.addresses.NextSerial(), buffer->parts.size() == kMostParts};
  if (!found->temporary) buffer->parts[offset] = {found->serial, memory};
  return REWIRE_DEVICE_OK;
}

// A buffer, or a part of one, is told by its serial number, which no other one ever has.
void Kernel::Describe(const RewireLaunch& launch, const std::vector<Found>& found, Words* given) {
  std::uint64_t* next = given->words;
  const std::uint64_t* const end = given->words + kMostWords;
  given->count = 0;
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const RewireLaunchArgument& argument = launch.arguments[i];
    const bool value = argument.kind == REWIRE_LAUNCH_VALUE;
    const std::size_t words = 2 + (value ? argument.bytes / 8 + 1 : 0);
    if (found[i].temporary || words > static_cast<std::size_t>(end - next)) return;
    next[0] = std::uint64_t{argument.kind} << 32 | argument.bytes;
    next[1] = found[i].serial;
    if (value) {
      next[words - 1] = 0;
      std::memcpy(next + 1, argument.u.value, argument.bytes);
    }
    next += words;
  }
  given->count = static_cast<std::size_t>(next - given->words);
}

int Kernel::SetArgument(cl_kernel kernel, cl_uint index, const RewireLaunchArgument& argument,
                        const Found& found) const {
  cl_int error = CL_SUCCESS;
  switch (argument.kind) {
    case REWIRE_LAUNCH_ADDRESS:
      error = state_.driver.clSetKernelArg(kernel, index, sizeof(found.memory), &found.memory);
      break;
    case REWIRE_LAUNCH_VALUE:
      error = state_.driver.clSetKernelArg(kernel, index, argument.bytes, argument.u.value);
      break;
    case REWIRE_LAUNCH_SHARED:
      error = state_.driver.clSetKernelArg(kernel, index, argument.bytes, nullptr);
      break;
    default:
      return FailWith(REWIRE_DEVICE_FAILED, "argument " + std::to_string(index) + " is of unknown kind " +
                                                std::to_string(argument.kind));
  }
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  return FailWith(REWIRE_DEVICE_FAILED,
                  "clSetKernelArg: " + ErrorName(error) + " for argument " + std::to_string(index));
}

int Kernel::Bind(const RewireLaunch& launch, const std::vector<Found>& found, Bound* bound) {
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
    const int code = SetArgument(bound->object, i, launch.arguments[i], found[i]);
    if (code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

int Kernel::Record(const RewireLaunch& launch, const std::size_t* global, const std::size_t* local,
                   Recording* recording) {
  Bound own;
  if (const int code = Bind(launch, found_, &own); code != REWIRE_DEVICE_OK) {
    if (own.object != nullptr) state_.driver.clReleaseKernel(own.object);
    return code;
  }
  Command command;
  command.kernel = own.object;
  std::copy(global, global + 3, command.global);
  std::copy(local, local + 3, command.local);
  std::vector<cl_mem> memory;
  for (const Found& argument : found_) memory.push_back(argument.memory);
  recording->Add(command, memory);
  return REWIRE_DEVICE_OK;
}

int Kernel::Launch(DLDevice device, const RewireLaunch& launch, void* stream) {
  if (launch.argument_count != arguments_) {
    return FailWith(REWIRE_DEVICE_FAILED, "kernel '" + name_ + "' takes " + std::to_string(arguments_) +
                                              " arguments, " + std::to_string(launch.argument_count) +
                                              " are given");
  }
  std::size_t global[3];
  std::size_t local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = launch.group_threads[i];
    global[i] = std::size_t{launch.groups[i]} * launch.group_threads[i];
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Device& own = *state_.Find(device);
  found_.resize(launch.argument_count);
  int code = REWIRE_DEVICE_OK;
  std::uint32_t ready = 0;
  for (; code == REWIRE_DEVICE_OK && ready < launch.argument_count; ++ready) {
    const RewireLaunchArgument& argument = launch.arguments[ready];
    const bool address = argument.kind == REWIRE_LAUNCH_ADDRESS;
    code = Find(own, address ? argument.u.address : nullptr, &found_[ready]);
  }
  if (code == REWIRE_DEVICE_OK) {
    cl_command_queue queue = state_.QueueOf(device, stream);
    Recording* recording = state_.recordings.Find(queue);
    code = recording != nullptr ? Record(launch, global, local, recording)
                                : Enqueue(launch, queue, global, local);
  }
  // The driver keeps the memory until the work is done.
  for (std::uint32_t i = 0; i < ready; ++i) {
    if (found_[i].temporary) state_.driver.clReleaseMemObject(found_[i].memory);
  }
  return code;
}

int Kernel::Enqueue(const RewireLaunch& launch, cl_command_queue queue, const std::size_t* global,
                    const std::size_t* local) {
  Words given;
  Describe(launch, found_, &given);
  const bool comparable = given.count > 0;
  Bound& bound = bound_[comparable ? HashOf(given.words, given.count) % kObjects : 0];
  const bool same =
      comparable && bound.words == given.count &&
      std::memcmp(bound.arguments.get(), given.words, given.count * sizeof(given.words[0])) == 0;
  if (!same) {
    const int code = Bind(launch, found_, &bound);
    if (code != REWIRE_DEVICE_OK) return code;
    if (comparable) {
      bound.arguments = std::make_unique<std::uint64_t[]>(given.count);
      std::copy(given.words, given.words + given.count, bound.arguments.get());
      bound.words = given.count;
    }
  }
  const cl_int error = state_.driver.clEnqueueNDRangeKernel(queue, bound.object, 3, nullptr, global, local, 0,
                                                            nullptr, nullptr);
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  FailIn("clEnqueueNDRangeKernel", error);
  return FailWith(REWIRE_DEVICE_FAILED, std::string(LastWords()) + " for kernel '" + name_ + "'");
}

}  // namespace rewire::opencl

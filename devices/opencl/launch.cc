// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/launch.h"

#include <algorithm>
#include <cstring>

namespace rewire::opencl {
namespace {

constexpr std::size_t kShort = sizeof(std::uint64_t);  // bytes of a value that is compared as one number

// The first bytes of a value, 8 at most, as a number.
std::uint64_t FirstBytes(const void* value, std::size_t bytes) {
  if (bytes == sizeof(std::uint32_t)) {
    std::uint32_t number = 0;
    std::memcpy(&number, value, sizeof(number));
    return number;
  }
  std::uint64_t number = 0;
  if (bytes >= kShort) {
    std::memcpy(&number, value, kShort);
  } else {
    std::memcpy(&number, value, bytes);
  }
  return number;
}

// Arguments that differ where this does not look are told apart when they are compared.
std::size_t HashOf(const RewireLaunch& launch) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = 0;
  std::uint64_t position = 0;  // the products do not wait for each other
  const auto add = [&](std::uint64_t word) {
    ++position;
    hash += (word + position) * (kFactor + 2 * position);
  };
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const RewireLaunchArgument& argument = launch.arguments[i];
    if (argument.kind == REWIRE_LAUNCH_ADDRESS) {
      add(reinterpret_cast<std::uintptr_t>(argument.u.address));
    } else if (argument.kind == REWIRE_LAUNCH_VALUE) {
      add(FirstBytes(argument.u.value, argument.bytes));
      // A longer one mostly begins with sizes.
      if (argument.bytes >= 2 * kShort) {
        add(FirstBytes(static_cast<const unsigned char*>(argument.u.value) + kShort, kShort));
      }
    }
  }
  return static_cast<std::size_t>((hash ^ hash >> 32) * kFactor >> 57);
}

// The sizes of a launch as OpenCL wants them.
struct Extents {
  explicit Extents(const RewireLaunch& launch) {
    for (int i = 0; i < 3; ++i) {
      local[i] = launch.group_threads[i];
      global[i] = std::size_t{launch.groups[i]} * launch.group_threads[i];
    }
  }
  std::size_t global[3];
  std::size_t local[3];
};

}  // namespace

Kernel* Kernel::Make(State& state, cl_program program, const char* name) {
  std::unique_ptr<Kernel> made(new Kernel(state, program, name));
  cl_int error = CL_SUCCESS;
  cl_kernel first = state.driver.clCreateKernel(program, name, &error);
  if (error != CL_SUCCESS) {
    FailWith(REWIRE_DEVICE_FAILED,
             "clCreateKernel: " + ErrorName(error) + ", the module has no kernel '" + name + "'");
    return nullptr;
  }
  made->bound_[0].object = first;
  error = state.driver.clGetKernelInfo(first, CL_KERNEL_NUM_ARGS, sizeof(made->arguments_), &made->arguments_,
                                       nullptr);
  if (error == CL_SUCCESS) return made.release();
  FailIn("clGetKernelInfo", error);
  return nullptr;
}

Kernel::~Kernel() {
  for (std::size_t i = 0; i < kObjects; ++i) {
    if (bound_[i].object != nullptr) state_.driver.clReleaseKernel(bound_[i].object);
  }
}

// The same addresses, sizes and buffers have the same memory objects.
bool Kernel::Holds(const Bound& bound, const RewireLaunch& launch) const {
  if (!bound.holds) return false;
  const Held* held = bound.held.data();
  const RewireLaunchArgument* const end = launch.arguments + launch.argument_count;
  for (const RewireLaunchArgument* given = launch.arguments; given != end; ++given, ++held) {
    if (given->kind != held->kind || given->bytes != held->bytes) return false;
    if (given->kind == REWIRE_LAUNCH_ADDRESS) {
      if (reinterpret_cast<std::uintptr_t>(given->u.address) != held->word) return false;
      if (given->u.address == nullptr) continue;
      const Buffer* buffer = state_.addresses.Find(given->u.address);
      if (buffer == nullptr || buffer->serial != held->serial) return false;
    } else if (given->kind == REWIRE_LAUNCH_VALUE) {
      const bool same = given->bytes <= kShort
                            ? FirstBytes(given->u.value, given->bytes) == held->word
                            : std::memcmp(given->u.value, &bound.values[held->word], given->bytes) == 0;
      if (!same) return false;
    }
  }
  return true;
}

void Kernel::Hold(const RewireLaunch& launch, const LaunchMemory& memory, Bound* bound) const {
  bound->holds = !memory.temporary();
  if (!bound->holds) return;
  bound->held.resize(launch.argument_count);
  bound->values.clear();
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const RewireLaunchArgument& given = launch.arguments[i];
    Held& held = bound->held[i];
    held = {given.kind, given.bytes, 0, memory.serial(i)};
    if (given.kind == REWIRE_LAUNCH_ADDRESS) {
      held.word = reinterpret_cast<std::uintptr_t>(given.u.address);
    } else if (given.kind == REWIRE_LAUNCH_VALUE && given.bytes <= kShort) {
      held.word = FirstBytes(given.u.value, given.bytes);
    } else if (given.kind == REWIRE_LAUNCH_VALUE) {
      held.word = bound->values.size();
      const auto* bytes = static_cast<const unsigned char*>(given.u.value);
      bound->values.insert(bound->values.end(), bytes, bytes + given.bytes);
    }
  }
}

int Kernel::SetArgument(cl_kernel kernel, cl_uint index, const RewireLaunchArgument& argument,
                        cl_mem memory) const {
  cl_int error = CL_SUCCESS;
  switch (argument.kind) {
    case REWIRE_LAUNCH_ADDRESS:
      error = state_.driver.clSetKernelArg(kernel, index, sizeof(memory), &memory);
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

int Kernel::SetArguments(const RewireLaunch& launch, const LaunchMemory& memory, cl_kernel* object) const {
  if (*object == nullptr) {
    cl_int error = CL_SUCCESS;
    cl_kernel made = state_.driver.clCreateKernel(program_, name_.c_str(), &error);
    if (error != CL_SUCCESS) return FailIn("clCreateKernel", error);
    *object = made;
  }
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    const int code = SetArgument(*object, i, launch.arguments[i], memory.memory(i));
    if (code != REWIRE_DEVICE_OK) return code;
  }
  return REWIRE_DEVICE_OK;
}

int Kernel::Record(const Device& device, const RewireLaunch& launch, Recording* recording) const {
  LaunchMemory memory(state_);
  if (const int code = memory.Find(device, launch); code != REWIRE_DEVICE_OK) return code;
  Command command;
  if (const int code = SetArguments(launch, memory, &command.kernel); code != REWIRE_DEVICE_OK) {
    if (command.kernel != nullptr) state_.driver.clReleaseKernel(command.kernel);
    return code;
  }
  const Extents extents(launch);
  std::copy(extents.global, extents.global + 3, command.global);
  std::copy(extents.local, extents.local + 3, command.local);
  return recording->Add(command, memory.Objects());
}

int Kernel::Enqueue(cl_kernel object, const RewireLaunch& launch, cl_command_queue queue) const {
  const Extents extents(launch);
  const cl_int error = state_.driver.clEnqueueNDRangeKernel(queue, object, 3, nullptr, extents.global,
                                                            extents.local, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  FailIn("clEnqueueNDRangeKernel", error);
  return FailWith(REWIRE_DEVICE_FAILED, std::string(LastWords()) + " for kernel '" + name_ + "'");
}

int Kernel::BindAndEnqueue(const Device& device, const RewireLaunch& launch, cl_command_queue queue,
                           Bound* bound) const {
  bound->holds = false;
  LaunchMemory memory(state_);
  if (const int code = memory.Find(device, launch); code != REWIRE_DEVICE_OK) return code;
  if (const int code = SetArguments(launch, memory, &bound->object); code != REWIRE_DEVICE_OK) return code;
  Hold(launch, memory, bound);
  return Enqueue(bound->object, launch, queue);
}

int Kernel::Launch(DLDevice device, const RewireLaunch& launch, void* stream) {
  if (launch.argument_count != arguments_) {
    return FailWith(REWIRE_DEVICE_FAILED, "kernel '" + name_ + "' takes " + std::to_string(arguments_) +
                                              " arguments, " + std::to_string(launch.argument_count) +
                                              " are given");
  }
  // A launch on a stream asks for its device only if something is new.
  if (stream == nullptr && state_.Find(device) == nullptr) return REWIRE_DEVICE_FAILED;
  cl_command_queue queue = state_.QueueOf(device, stream);
  if (Recording* recording = state_.recordings.Find(queue)) {
    const Device* own = state_.Find(device);
    return own == nullptr ? REWIRE_DEVICE_FAILED : Record(*own, launch, recording);
  }
  Bound& bound = bound_[HashOf(launch)];
  const std::lock_guard<std::mutex> lock(bound.mutex);
  if (Holds(bound, launch)) return Enqueue(bound.object, launch, queue);
  const Device* own = state_.Find(device);
  return own == nullptr ? REWIRE_DEVICE_FAILED : BindAndEnqueue(*own, launch, queue, &bound);
}

}  // namespace rewire::opencl

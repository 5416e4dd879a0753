// SPDX-License-Identifier: Apache-2.0
//
// Kernels and their launches.
//
// OpenCL keeps a kernel's arguments in the kernel's object, and setting them takes as long as a launch. A
// static program launches with the same arguments in every run. So a kernel has several such objects, found
// by the arguments that they hold. A launch whose arguments one of them holds only compares and enqueues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/devices/opencl/launch_memory.h"
#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {

// Any thread may launch.
class Kernel {
 public:
  // Null after a failure, with the thread's words set. `program` outlives the kernel.
  static Kernel* Make(State& state, cl_program program, const char* name);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const std::string& name() const { return name_; }
  int Launch(DLDevice device, const RewireLaunch& launch, void* stream);

 private:
  static constexpr std::size_t kObjects = 128;

  // An argument that an object holds. A buffer is told by its serial number, which no other one ever has.
  struct Held {
    std::uint32_t kind = 0;
    std::uint32_t bytes = 0;
    std::uint64_t word = 0;  // an address, a value of up to 8 bytes, or where a longer one begins in `values`
    std::uint64_t serial = 0;  // of an address's buffer
  };
  // A kernel object with the arguments that it holds. It is used by one thread at a time.
  struct Bound {
    std::mutex mutex;
    cl_kernel object = nullptr;
    bool holds = false;  // the arguments are those in `held`
    std::vector<Held> held;
    std::vector<unsigned char> values;
  };
  Kernel(State& state, cl_program program, const char* name)
      : state_(state), program_(program), name_(name), bound_(std::make_unique<Bound[]>(kObjects)) {}

  bool Holds(const Bound& bound, const RewireLaunch& launch) const;
  void Hold(const RewireLaunch& launch, const LaunchMemory& memory, Bound* bound) const;
  int SetArgument(cl_kernel kernel, cl_uint index, const RewireLaunchArgument& argument, cl_mem memory) const;
  // Sets all arguments of an object, which is made first if it is null.
  int SetArguments(const RewireLaunch& launch, const LaunchMemory& memory, cl_kernel* object) const;
  int Enqueue(cl_kernel object, const RewireLaunch& launch, cl_command_queue queue) const;
  int BindAndEnqueue(const Device& device, const RewireLaunch& launch, cl_command_queue queue,
                     Bound* bound) const;
  // A recorded launch has a kernel object of its own, which keeps the arguments.
  int Record(const Device& device, const RewireLaunch& launch, Recording* recording) const;

  State& state_;
  cl_program program_;
  std::string name_;
  cl_uint arguments_ = 0;
  std::unique_ptr<Bound[]> bound_;  // by the arguments' hash
};

}  // namespace rewire::opencl

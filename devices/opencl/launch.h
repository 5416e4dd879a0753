// SPDX-License-Identifier: Apache-2.0
//
// Kernels and their launches.
//
// OpenCL keeps a kernel's arguments in the kernel's object, and setting them takes as long as a launch. A
// static program launches with the same arguments in every run. So a kernel has several such objects, found
// by the arguments that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {

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
  static constexpr std::size_t kObjects = 128;  // a power of two

  // A kernel object with the arguments that it holds.
  struct Bound {
    cl_kernel object = nullptr;
    std::size_t words = 0;
    std::unique_ptr<std::uint64_t[]> arguments;
  };
  // The arguments of one launch, as words that can be compared.
  static constexpr std::size_t kMostWords = 192;
  struct Words {
    std::size_t count = 0;
    std::uint64_t words[kMostWords];
  };
  Kernel(State& state, cl_program program, const char* name)
      : state_(state), program_(program), name_(name) {}

  // What an argument that is an address stands for.
  struct Found {
    cl_mem memory = nullptr;
    std::uint64_t serial = 0;
    bool temporary = false;  // a sub-buffer of this launch alone
  };
  int Find(const Device& device, const void* address, Found* found) const;
  // Leaves given->count at 0 if the arguments cannot be compared.
  static void Describe(const RewireLaunch& launch, const std::vector<Found>& found, Words* given);
  int SetArgument(cl_kernel kernel, cl_uint index, const RewireLaunchArgument& argument,
                  const Found& found) const;
  int Bind(const RewireLaunch& launch, const std::vector<Found>& found, Bound* bound);
  int Enqueue(const RewireLaunch& launch, cl_command_queue queue, const std::size_t* global,
              const std::size_t* local);
  // A recorded launch has a kernel object of its own, which keeps the arguments.
  int Record(const RewireLaunch& launch, const std::size_t* global, const std::size_t* local,
             Recording* recording);

  State& state_;
  cl_program program_;
  std::string name_;
  cl_uint arguments_ = 0;
  std::mutex mutex_;          // of what follows; one thread at a time launches
  std::vector<Found> found_;  // of the launch that is being made
  std::vector<Bound> bound_;  // by the arguments' hash
};

}  // namespace rewire::opencl

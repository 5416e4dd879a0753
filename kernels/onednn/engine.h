// SPDX-License-Identifier: Apache-2.0
//
// All kernels of this library share oneDNN's engine, a stream, errors, threads and scratch memory.
//
// oneDNN uses threads of its own (OpenMP). Their number is a setting of the calling thread, so programs do
// not influence each other. A primitive is made for the number of threads that it runs with.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <new>

#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::onednn {

// The engine of the processor. There is one per process. It is never destroyed, because primitives may be
// destroyed later than static objects.
const dnnl::engine& Engine();

// While it exists, OpenMP loops of this thread use as many threads as the program has.
class ProgramThreads {
 public:
  ProgramThreads();
  ~ProgramThreads();
  ProgramThreads(const ProgramThreads&) = delete;
  ProgramThreads& operator=(const ProgramThreads&) = delete;

 private:
  int before_;
};

// Runs `body`, which returns a Status, and converts oneDNN's exceptions to a Status.
template <typename Body>
Status Guarded(const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    return RuntimeError("oneDNN: ", error.what(), " (status ", static_cast<int>(error.status), ")");
  } catch (const std::bad_alloc&) {
    return RuntimeError("out of memory");
  }
}

// The most multiplications of one call of oneDNN, which take some milliseconds. oneDNN does not ask whether
// to go on. So longer work is split along rows or images, and the host is asked between the parts.
inline constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 27;

// Executes a primitive on this thread and waits for it.
Status Execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t* arguments, int count);

// Allocates scratch memory for a primitive that was made with user scratchpads. Null if it needs none.
Status Scratch(const dnnl::memory::desc& desc, void** memory);

// Attributes of all primitives here: the caller provides scratch memory, so that it is the VM's and is
// counted.
dnnl::primitive_attr UserScratch();

}  // namespace rewire::kernel::onednn

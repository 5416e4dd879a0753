// SPDX-License-Identifier: Apache-2.0
// What every kernel of this library shares of oneDNN: the engine, a stream, errors, threads and scratch
// memory.
//
// oneDNN brings its own threads (OpenMP). Their number is a setting of the calling thread alone, so one
// program's choice never shows in another's; a primitive is made for the number that it runs with.
#pragma once

#include <dnnl.hpp>
#include <new>

#include "vm/kernel/status.h"

namespace rewire::kernel::onednn {

// The processor. One for the process; never destroyed, since primitives may outlive any static order.
const dnnl::engine& Engine();

// While it lives, OpenMP loops of this thread use as many threads as the program has.
class ProgramThreads {
 public:
  ProgramThreads();
  ~ProgramThreads();
  ProgramThreads(const ProgramThreads&) = delete;
  ProgramThreads& operator=(const ProgramThreads&) = delete;

 private:
  int before_;
};

// Runs `body`, which returns a Status, and turns what oneDNN throws into one.
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

// Executes on this thread and waits.
Status Execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t* arguments, int count);

// Scratch of the size that a primitive made with user scratchpads asks for; null when it needs none.
Status Scratch(const dnnl::memory::desc& desc, void** memory);

// Attributes of every primitive here: scratch memory is the caller's, so that it is the VM's and is counted.
dnnl::primitive_attr UserScratch();

}  // namespace rewire::kernel::onednn

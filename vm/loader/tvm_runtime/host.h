// SPDX-License-Identifier: Apache-2.0
//
// Functions of TVM's runtime that code compiled by TVM calls by name. TVM has them in its own libraries.
// Programs that run here have only these. docs/vm-convert.md lists them, and those that are not here.
//
// They are a library of their own, which the loader opens for a kernel library that names one
// (vm/loader/tvm_functions.h). This header is what the two agree on: that library links nothing of the VM.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/loader/tvm_runtime/classic_abi.h"

namespace rewire::tvm_runtime {

// The names of all functions begin with this.
inline constexpr char kPrefix[] = "tvm.contrib.";

struct Function {
  const char* name;
  ClassicFunction call;
};

// The functions reach the VM by a Host. They may be called only inside a kernel that a VM runs.
struct Host {
  const RewireKernelApi* kernels;
  void (*set_error)(const char* message);
  // Scratch memory of the running kernel, as TVMBackendAllocWorkspace and TVMBackendFreeWorkspace have it.
  void* (*allocate)(int device_type, int device_id, std::uint64_t bytes, int dtype_code, int dtype_bits);
  int (*free)(int device_type, int device_id, void* block);
};

// The library's one symbol. The loader calls it before any other function. `host` has static storage, and so
// has what is returned: all functions. They take tensors of the host without gaps and fail, with a message,
// on any other argument.
using Bind = const Function* (*)(const Host* host, std::size_t* count);
inline constexpr char kBind[] = "rewire_tvm_runtime_bind";
inline constexpr char kLibrary[] = "librewire_tvm_runtime.so";

// The host. Not null inside the functions.
extern const Host* g_host;

}  // namespace rewire::tvm_runtime

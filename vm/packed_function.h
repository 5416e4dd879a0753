// SPDX-License-Identifier: Apache-2.0
// PackedFunction: an owned, callable kernel in the host process: what in-process kernels are registered as,
// and what the loader resolves an import to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/export.h"
#include "vm/kernel/workspace.h"

namespace rewire {

// Fetches and clears the calling thread's error after a packed function returned non-zero. Which thread-local
// an error stands in depends on the runtime that the kernel was built for, so each function knows its own.
struct KernelError {
  std::string kind;  // "ValueError"; may be empty
  std::string message;
};
using TakeErrorFunction = KernelError (*)(const void* error_context);

// Immutable once made; copies share. `call` may run on many threads at once.
struct PackedFunction {
  RewirePackedFunction call = nullptr;
  void* handle = nullptr;                  // first argument of `call`
  TakeErrorFunction take_error = nullptr;  // null: Rewire's own thread-local error
  const void* error_context = nullptr;
  RewireWorkspaceBound workspace = nullptr;  // null: not declared
  // Bytes that tensor arguments must be aligned to, a power of two, where its library tells; 0: as imports
  // say.
  std::uint32_t alignment = 0;
  std::shared_ptr<const void> owner;  // keeps `handle` and the code of `call` alive

  explicit operator bool() const { return call != nullptr; }
};

// Sets and takes Rewire's own error of the calling thread: what RewireKernelApi::set_error writes.
REWIRE_API void SetKernelError(const char* kind, const char* message);
REWIRE_API KernelError TakeKernelError();

// The error of the calling thread after `function` has failed, as text for a message: "ValueError: ...".
// Clears it.
REWIRE_API std::string TakeErrorText(const PackedFunction& function);

}  // namespace rewire

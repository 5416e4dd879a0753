// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/packed_function.h>.
//
// PackedFunction: a callable kernel in the host process, with ownership. Hosts register kernels in this form,
// and the loader resolves imports to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "rewire/base/export.h"
#include "rewire/vm/kernel/row.h"
#include "rewire/vm/kernel/work.h"

namespace rewire {

// The error of a packed function. A TakeErrorFunction fetches and clears the calling thread's error after a
// packed function returned non-zero. Each function brings its own, because the place of the error depends on
// the runtime that the kernel was built for.
struct KernelError {
  std::string kind;  // "ValueError"; may be empty
  std::string message;
};
using TakeErrorFunction = KernelError (*)(const void* error_context);

// Immutable once made. Copies share the owner. Several threads may use `call` at once.
struct PackedFunction {
  RewirePackedFunction call = nullptr;
  void* handle = nullptr;                  // first argument of `call`
  TakeErrorFunction take_error = nullptr;  // null: uses Rewire's own thread-local error
  const void* error_context = nullptr;
  RewireWorkspaceBound workspace = nullptr;  // null: the workspace is not declared
  // The row that its library declares about it (vm/kernel/row.h). Null: nothing, and then the import's
  // declaration counts. Has static storage or is kept alive by `owner`.
  const RewireKernelRow* row = nullptr;
  // The work that its library declares, in the names of `row` (vm/kernel/work.h). Null: none. Lives as long.
  const RewireKernelWork* work = nullptr;
  // Alignment in bytes that tensor arguments need, a power of two, if the library declares one. 0: as the
  // import declares.
  std::uint32_t alignment = 0;
  std::shared_ptr<const void> owner;  // keeps `handle` and the code of `call` alive

  explicit operator bool() const { return call != nullptr; }
};

// Set and take Rewire's own error of the calling thread. RewireKernelApi::set_error writes the same error.
REWIRE_API void SetKernelError(const char* kind, const char* message);
REWIRE_API KernelError TakeKernelError();

// Returns the calling thread's error after `function` failed, as text for a message: "ValueError: ...".
// Clears the error.
REWIRE_API std::string TakeErrorText(const PackedFunction& function);

}  // namespace rewire

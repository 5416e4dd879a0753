// SPDX-License-Identifier: Apache-2.0
//
// The tvm-ffi runtime of the process. tvm-ffi libraries share it: it holds the raised error, the type table
// and the function registry.
//
// If a real libtvm_ffi.so is already loaded, it is used. Otherwise Rewire's own (vm/loader/ffi_shim) is
// loaded under the same SONAME, so that libraries linked against libtvm_ffi.so find it. It stays loaded,
// because objects that kernels made point into it.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// Makes sure that a runtime exists for every library that is loaded from now on. Thread-safe. Errors:
// kNotFound with the places searched.
Status EnsureFfiRuntime();

// Returns the symbol that `library` (a dlopen handle) sees under this name: the first one of the process, as
// for its undefined symbols, or else its own or its dependencies'. Null if there is none. Thread-safe.
void* FfiRuntimeSymbol(void* library, const char* name);

// Fetches and clears the calling thread's error. `move_from_raised` is the runtime's
// TVMFFIErrorMoveFromRaised; null means Rewire's own error.
KernelError TakeFfiError(void (*move_from_raised)(void** error));

}  // namespace rewire

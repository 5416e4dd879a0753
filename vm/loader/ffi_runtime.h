// SPDX-License-Identifier: Apache-2.0
// The tvm-ffi runtime of the process: who holds the raised error, the type table and the function registry
// that tvm-ffi libraries share. A real libtvm_ffi.so that is already loaded is used; otherwise Rewire's own
// (vm/loader/ffi_shim), under the same SONAME, so that libraries linked against libtvm_ffi.so find it. It
// stays loaded: objects that kernels have made point into it.
#pragma once

#include <string>

#include "base/status.h"
#include "vm/packed_function.h"

namespace rewire {

// Makes sure that there is one, for every library loaded from now on. Thread-safe. kNotFound with the places
// searched.
Status EnsureFfiRuntime();

// What `library` (a dlopen handle) sees under this name: the first one of the process, as for its undefined
// symbols, else its own or its dependencies'. Null when there is none. Thread-safe.
void* FfiRuntimeSymbol(void* library, const char* name);

// Fetches and clears the calling thread's error in the runtime whose TVMFFIErrorMoveFromRaised this is, or,
// when there is none, Rewire's own.
KernelError TakeFfiError(void (*move_from_raised)(void** error));

}  // namespace rewire

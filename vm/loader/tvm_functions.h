// SPDX-License-Identifier: Apache-2.0
// Opens Rewire's library of TVM's runtime functions (vm/loader/tvm_runtime).
#pragma once

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/loader/tvm_runtime/host.h"

namespace rewire {

// Returns all functions. The library is opened once per process and stays open. Thread-safe. Errors:
// kNotFound with the places searched; kIo with the text of dlerror.
Result<Span<const tvm_runtime::Function>> TvmFunctions();

}  // namespace rewire

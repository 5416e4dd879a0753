// SPDX-License-Identifier: Apache-2.0
//
// `__tvm_dev_mblob`: the data that TVM's export_library adds to a library of the classic ABI.
#pragma once

#include <cstddef>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/import/device_module.h"

namespace rewire {

// Reads the device code in a library with this blob, and checks that the library can serve as a kernel
// library. It may hold the library's own functions, device code, and an executable or a graph; the latter are
// for programs that run the file itself. `bytes` is the whole symbol. Errors: kInvalidFile; kUnsupported,
// with the name, for another kind of module (an external code generator).
Result<Array<tvm::DeviceModule>> ReadClassicBlob(Span<const std::byte> bytes);

}  // namespace rewire

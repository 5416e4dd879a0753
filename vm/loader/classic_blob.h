// SPDX-License-Identifier: Apache-2.0
//
// `__tvm_dev_mblob`: the data that TVM's export_library adds to a library of the classic ABI.
#pragma once

#include <cstddef>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// Checks whether a library with this blob can serve as a kernel library. It must hold nothing but the
// library's own functions and an executable or a graph; the latter are for programs that run the file itself.
// `bytes` is the whole symbol. Errors: kInvalidFile; kUnsupported, with the name, for another kind of module
// (code for a device, an external code generator).
Status CheckClassicBlob(Span<const std::byte> bytes);

}  // namespace rewire

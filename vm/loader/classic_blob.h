// SPDX-License-Identifier: Apache-2.0
// `__tvm_dev_mblob`: what TVM's export_library puts into a library of the classic ABI beside its functions.
#pragma once

#include <cstddef>

#include "base/span.h"
#include "base/status.h"

namespace rewire {

// Whether a library with this blob can serve as a kernel library: it holds nothing but the library's own
// functions and an executable or a graph, which are for whoever runs the file itself. `bytes` is the whole
// symbol. kUnsupported for another kind of module (code for a device, an external code generator), by name;
// kInvalidFile.
Status CheckClassicBlob(Span<const std::byte> bytes);

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
//
// The extension "classification" of the Open Inference Protocol: in place of a tensor, a client gets the
// largest of its elements.
#pragma once

#include <cstdint>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// Replaces a tensor by a BYTES tensor of its `count` largest elements, the largest first, or of all if there
// are fewer. Each is "VALUE:INDEX". With `rows`, the first dimension counts rows, and each row has its own;
// the shape is [rows, count], and [count] without. Equal elements come in the order of their indices, NaN
// behind all others. The result is in `memory`. Errors: kUnsupported for FP16 and BF16; kOutOfMemory.
Status Classify(std::uint32_t count, bool rows, Arena* memory, OutputTensor* tensor);

}  // namespace rewire::serve

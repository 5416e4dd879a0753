// SPDX-License-Identifier: Apache-2.0
//
// Index tuples for device code.
#pragma once

#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

// How the tuples, the last axis of `indices`, name slices of x behind its first `batch_dims` axes. The shapes
// have been checked by GatherNDDims.
Tuples TuplesOf(ShapeView x, ShapeView indices, std::int64_t batch_dims);

}  // namespace rewire::kernel::device

// SPDX-License-Identifier: Apache-2.0
// numpy's matmul on checked arguments.
#pragma once

#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

// a, b and out are contiguous, of one dtype (f32, f64, i32, i64), out has MatMulDims' shape and overlaps
// neither.
Status MatMulInto(TensorView a, TensorView b, TensorView out);

}  // namespace rewire::kernel::cpu

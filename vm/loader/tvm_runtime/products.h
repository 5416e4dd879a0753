// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices, which TVM's runtime hands to a BLAS library. Here they are plain loops.
#pragma once

#include "rewire/base/span.h"
#include "rewire/vm/loader/tvm_runtime/host.h"

namespace rewire::tvm_runtime {

// With static storage. Each takes (a, b, c, transpose_a, transpose_b) and writes c.
Span<const Function> Products();

}  // namespace rewire::tvm_runtime

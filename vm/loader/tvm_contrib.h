// SPDX-License-Identifier: Apache-2.0
//
// Functions of TVM's runtime that code compiled by TVM calls by name: sorting, and matrix products for a BLAS
// library. TVM has them in its own libraries. Programs that run here have only these.
#pragma once

#include <string_view>

#include "rewire/base/span.h"
#include "rewire/vm/loader/classic_abi.h"

namespace rewire {

struct TvmContribFunction {
  std::string_view name;
  ClassicFunction function;
};

// All of them, with static storage. They take tensors of the host without gaps and fail, with a message,
// on any other argument. They may be called only inside a kernel that a VM runs: scratch memory is the VM's.
//   tvm.contrib.sort.argsort(x, indices, axis, ascending)
//   tvm.contrib.sort.sort(x, sorted, axis, ascending)
//   tvm.contrib.sort.topk(x, [values,] [indices,] k, axis, "both" | "values" | "indices", ascending)
//     x: f32, f64 or integers; indices: i32, i64, f32 or f64. Equal elements keep their order; NaN is above
//     all numbers.
//   tvm.contrib.cblas.matmul(a, b, c, transpose_a, transpose_b), likewise tvm.contrib.mkl.matmul
//     f32 or f64, rank 2: c = a b
Span<const TvmContribFunction> TvmContribFunctions();

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
// numpy's matmul on checked arguments.
#pragma once

#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// a, b and out are contiguous, of one dtype (f32, f64, i32, i64), out has MatMulDims' shape and overlaps
// neither.
Status MatMulInto(TensorView a, TensorView b, TensorView out);

// The loop over the matrices of out, a and b, whose numbers of elements are given: their strides, in this
// order, in elements. A matrix that is repeated has stride 0.
Layout<3> BatchLayout(TensorView a, TensorView b, TensorView out, std::int64_t out_matrix,
                      std::int64_t a_matrix, std::int64_t b_matrix);

// Declares what MatMulInto takes for operands 0 and 1 of the call, as elements of `dtype`. False where it
// cannot say.
bool DeclareMatMul(WorkspaceSizes& sizes, DLDataType dtype);

// Products of matrices m x k by k x n: the first ones, and a loop over all of them. Its strides say where
// out, a and b lie, in this order. The columns of all three are 1 apart, and the products together fill `out`
// without gaps.
template <typename T>
struct MatrixProducts {
  std::int64_t m, n, k;  // at least 1
  Matrix<T> a, b;
  T* out;
  std::int64_t out_row;
  Layout<3> batches;
};
// Takes workspace as Gemm does, and none for f32.
template <typename T>
Status Multiply(const MatrixProducts<T>& of);

}  // namespace rewire::kernel::cpu

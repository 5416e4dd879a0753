// SPDX-License-Identifier: Apache-2.0
//
// The output shapes of operators. There is one rule for each, which both the kernel (to check its output) and
// the kernel's shape function (shape_functions.cc) use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// numpy's broadcasting. `result` may be where `a` comes from.
Status BroadcastDims(ShapeView a, ShapeView b, Dims* result);

// numpy's matmul: [..., M, K] x [..., K, N], leading dimensions broadcast, rank 1 treated as a row or a
// column.
Status MatMulDims(ShapeView a, ShapeView b, Dims* result);

// Marks the axes of `axes` in `marked`. Each must be in [-rank, rank), and none may occur twice.
Status MarkAxes(ShapeView axes, int rank, bool (&marked)[kMaxKernelRank]);
Dims ReducedDims(ShapeView x, const bool (&reduced)[kMaxKernelRank], bool keepdims);

// Checks that `perm` is a permutation of 0..rank-1; an empty one stands for the reversed order.
Status PermutedDims(ShapeView x, const std::vector<std::int64_t>& perm, Dims* order, Dims* result);

// The shape of concat for the inputs so far and the next input: they may differ only along `axis`.
Status ConcatDims(ShapeView sum, ShapeView next, int axis, int input, Dims* result);

// ONNX Gather: x's dims with `axis` replaced by the dims of the indices.
Status GatherDims(ShapeView x, ShapeView indices, int axis, Dims* result);

// ONNX Slice: for each of x's axes, where the result begins, its step and its length. Empty `axes` mean the
// first ones; empty `steps` mean 1. Negative positions count from the end, and positions out of range are
// limited to it.
struct SliceRange {
  Dims start;
  Dims step;
  Dims dims;
};
Status SliceDims(ShapeView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                 SliceRange* range);

// x's dims with pads[i] before and pads[rank + i] after axis i; a negative pad removes.
Status PaddedDims(ShapeView x, ShapeView pads, Dims* result);

// The values of a rank 0 or 1 tensor of i64 or i32 with at most kMaxKernelRank elements: a shape, axes, pads.
Status ReadInts(const char* what, TensorView tensor, Dims* values);

// A shape argument, i64 or i32. Its dimensions are bounded so that sums and small multiples of them do not
// overflow.
Status ReadShape(const char* what, TensorView tensor, Dims* dims);
// The result of a shape function: `out` is i64 [rank].
Status WriteShape(const Dims& dims, TensorView out);

// The value of a tensor with one element: an integer of any type, or any number.
Status ReadInt(const char* what, TensorView tensor, std::int64_t* value);
Status ReadNumber(const char* what, TensorView tensor, double* value);

// Elements from one index to the next of a contiguous tensor.
Dims DenseStrides(ShapeView dims);

// False for a missing argument. A tensor without elements stands for a missing argument in the middle.
inline bool IsGiven(const std::optional<TensorView>& argument) { return argument && argument->size() != 0; }

// How many numbers start, start + delta, ... lie before limit. The arguments are one-element tensors of one
// dtype.
using ArangeTypes = Types<float, std::int64_t, std::int32_t, double>;
Status ArangeCount(TensorView start, TensorView limit, TensorView delta, std::int64_t* count);

// Checks that the output may be written while `input` is being read: they are the same elements at the same
// place, or do not overlap.
Status CheckInPlace(const char* out_name, TensorView out, const char* name, TensorView input);

}  // namespace rewire::kernel::cpu

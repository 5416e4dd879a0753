// SPDX-License-Identifier: Apache-2.0
// The shapes that operators give: one rule each, used by the kernel to check its output and by the kernel's
// shape function (shape_functions.cc) to compute it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {

// numpy's broadcasting. `result` may be where `a` comes from.
Status BroadcastDims(ShapeView a, ShapeView b, Dims* result);

// numpy's matmul: [..., M, K] x [..., K, N], leading dimensions broadcast, rank 1 treated as a row or a
// column.
Status MatMulDims(ShapeView a, ShapeView b, Dims* result);

// Marks the axes of `axes`, each in [-rank, rank), none twice, in `marked`.
Status MarkAxes(ShapeView axes, int rank, bool (&marked)[kMaxRank]);
Dims ReducedDims(ShapeView x, const bool (&reduced)[kMaxRank], bool keepdims);

// Checks that `perm` is a permutation of 0..rank-1; an empty one stands for the reversed order.
Status PermutedDims(ShapeView x, const std::vector<std::int64_t>& perm, Dims* order, Dims* result);

// One dimension more or other along `axis`: what concat gives for the dims so far and the next input.
Status ConcatDims(ShapeView sum, ShapeView next, int axis, int input, Dims* result);

// ONNX Gather: x's dims with `axis` replaced by the dims of the indices.
Status GatherDims(ShapeView x, ShapeView indices, int axis, Dims* result);

// ONNX Slice: for each of x's axes where the result begins, its step and its length. `axes` empty: the first
// ones; `steps` empty: 1. Positions from the end are negative, those out of range are held in it.
struct SliceRange {
  Dims start;
  Dims step;
  Dims dims;
};
Status SliceDims(ShapeView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                 SliceRange* range);

// x's dims with pads[i] before and pads[rank + i] after axis i; a negative pad removes.
Status PaddedDims(ShapeView x, ShapeView pads, Dims* result);

// The values of a rank 0 or 1 tensor of i64 or i32 with at most kMaxRank elements: a shape, axes, pads.
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

// An optional argument in the middle that is a tensor without elements is a missing one.
inline bool IsGiven(const std::optional<TensorView>& argument) { return argument && argument->size() != 0; }

// How many numbers start, start + delta, ... lie short of limit: one-element tensors of one dtype.
using ArangeTypes = Types<float, std::int64_t, std::int32_t, double>;
Status ArangeCount(TensorView start, TensorView limit, TensorView delta, std::int64_t* count);

// Elements whose output may be written while `input` is being read: the same ones at the same place, or none.
Status CheckInPlace(const char* out_name, TensorView out, const char* name, TensorView input);

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// The shapes that operators give: one rule each, used by the kernel to check its output and by the kernel's
// shape function (shape_functions.cc) to compute it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/checks.h"

namespace rewire::kernel::cpu {

// numpy's broadcasting. `result` may be where `a` comes from.
Status BroadcastDims(ShapeView a, ShapeView b, Dims* result);

// numpy's matmul: [..., M, K] x [..., K, N], leading dimensions broadcast, rank 1 treated as a row or a
// column.
Status MatMulDims(ShapeView a, ShapeView b, Dims* result);

// Marks the axes of `axes` (all when empty), each in [-rank, rank), in `reduced`.
Status MarkAxes(const std::vector<std::int64_t>& axes, int rank, bool (&reduced)[kMaxRank]);
Dims ReducedDims(ShapeView x, const bool (&reduced)[kMaxRank], bool keepdims);

// Checks that `perm` is a permutation of 0..rank-1; an empty one stands for the reversed order.
Status PermutedDims(ShapeView x, const std::vector<std::int64_t>& perm, Dims* order, Dims* result);

// One dimension more or other along `axis`: what concat gives for the dims so far and the next input.
Status ConcatDims(ShapeView sum, ShapeView next, int axis, int input, Dims* result);

// ONNX Gather: x's dims with `axis` replaced by the dims of the indices.
Status GatherDims(ShapeView x, ShapeView indices, int axis, Dims* result);

// Elements whose output may be written while `input` is being read: the same ones at the same place, or none.
Status CheckInPlace(const char* out_name, TensorView out, const char* name, TensorView input);

}  // namespace rewire::kernel::cpu

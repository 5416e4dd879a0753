// SPDX-License-Identifier: Apache-2.0
// Loops over several tensors of one broadcast shape.
//
// A Layout holds the loop's dimensions, outermost first, and each operand's stride along each: 0 where it is
// repeated. Dimensions of size 1 are dropped and neighbours that every operand walks evenly are merged, so
// that most loops have one or two dimensions left and the innermost is long.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/parallel.h"

namespace rewire::kernel::cpu {

template <int kOperands>
struct Layout {
  int rank = 0;
  std::int64_t dims[kMaxRank];
  std::int64_t strides[kMaxRank][kOperands];  // in elements

  // Adds a dimension inside those that are there.
  void Append(std::int64_t dim, const std::int64_t (&stride)[kOperands]) {
    if (dim == 1) return;
    if (rank > 0) {
      bool even = true;
      for (int k = 0; k < kOperands; ++k) even &= strides[rank - 1][k] == stride[k] * dim;
      if (even) {
        dims[rank - 1] *= dim;
        std::copy_n(stride, kOperands, strides[rank - 1]);
        return;
      }
    }
    dims[rank] = dim;
    std::copy_n(stride, kOperands, strides[rank]);
    ++rank;
  }
  // After the last Append: every loop has an innermost dimension.
  void Finish() {
    if (rank != 0) return;
    dims[0] = 1;
    for (int k = 0; k < kOperands; ++k) strides[0][k] = 1;
    rank = 1;
  }

  std::int64_t inner() const { return dims[rank - 1]; }
  const std::int64_t* inner_strides() const { return strides[rank - 1]; }
  std::int64_t rows() const { return Product(ShapeView(dims, kMaxRank), 0, rank - 1); }
};

// The strides of a tensor aligned to the right of a loop of `rank` dimensions: 0 for what it lacks or
// repeats.
inline void BroadcastStrides(TensorView tensor, int rank, std::int64_t* strides) {
  const int missing = rank - tensor.ndim();
  std::fill_n(strides, missing, 0);
  std::int64_t dense = 1;
  for (int i = tensor.ndim() - 1; i >= 0; --i) {
    const bool has_strides = tensor.dl_tensor()->strides != nullptr;
    strides[missing + i] = tensor.dim(i) == 1 ? 0 : has_strides ? tensor.stride(i) : dense;
    dense *= tensor.dim(i);
  }
}

// Calls row(offsets, count) for the innermost runs number `begin` to `end`, in order: offsets[k] is where
// operand k begins, in elements; `count` elements follow at layout.inner_strides().
template <int kOperands, typename Row>
void ForRows(const Layout<kOperands>& layout, std::int64_t begin, std::int64_t end, const Row& row) {
  const int outer = layout.rank - 1;
  std::int64_t index[kMaxRank];
  std::int64_t offsets[kOperands] = {};
  std::int64_t rest = begin;
  for (int i = outer - 1; i >= 0; --i) {
    index[i] = rest % layout.dims[i];
    rest /= layout.dims[i];
    for (int k = 0; k < kOperands; ++k) offsets[k] += index[i] * layout.strides[i][k];
  }
  for (std::int64_t r = begin; r < end; ++r) {
    row(offsets, layout.inner());
    for (int i = outer - 1; i >= 0; --i) {
      for (int k = 0; k < kOperands; ++k) offsets[k] += layout.strides[i][k];
      if (++index[i] < layout.dims[i]) break;
      index[i] = 0;
      for (int k = 0; k < kOperands; ++k) offsets[k] -= layout.dims[i] * layout.strides[i][k];
    }
  }
}

// The same for all of them, perhaps on several threads, so that runs must not write what others touch. A
// single run is split. `work` is how much there is to do for each element.
template <int kOperands, typename Row>
void ForEachRow(const Layout<kOperands>& layout, std::int64_t work, const Row& row) {
  const std::int64_t rows = layout.rows();
  const std::int64_t inner = layout.inner();
  if (inner == 0) return;
  if (rows != 1) {
    ParallelFor(rows, std::max<std::int64_t>(1, kGrain / (inner * work)),
                [&](std::int64_t begin, std::int64_t end) { ForRows(layout, begin, end, row); });
    return;
  }
  ParallelFor(inner, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t offsets[kOperands];
    for (int k = 0; k < kOperands; ++k) offsets[k] = begin * layout.inner_strides()[k];
    row(offsets, end - begin);
  });
}
template <int kOperands, typename Row>
void ForEachRow(const Layout<kOperands>& layout, const Row& row) {
  ForEachRow(layout, 1, row);
}

}  // namespace rewire::kernel::cpu

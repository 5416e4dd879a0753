// SPDX-License-Identifier: Apache-2.0
//
// Loops over several tensors that are broadcast to one shape.
//
// A Layout has the loop's dimensions, outermost first, and the stride of each operand along each dimension;
// the stride is 0 where the operand is repeated. Dimensions of size 1 are dropped. Adjacent dimensions are
// merged if all operands allow it. So most loops have one or two dimensions, and a long innermost one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

template <int kOperands>
struct Layout {
  int rank = 0;
  std::int64_t dims[kMaxKernelRank];
  std::int64_t strides[kMaxKernelRank][kOperands];  // in elements

  // Adds a dimension inside the existing ones.
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
  // Call after the last Append. Ensures that the loop has an innermost dimension.
  void Finish() {
    if (rank != 0) return;
    dims[0] = 1;
    for (int k = 0; k < kOperands; ++k) strides[0][k] = 1;
    rank = 1;
  }

  std::int64_t inner() const { return dims[rank - 1]; }
  const std::int64_t* inner_strides() const { return strides[rank - 1]; }
  // From one innermost run to the next. With one dimension there is no next.
  const std::int64_t* next_strides() const { return strides[std::max(rank - 2, 0)]; }
  std::int64_t rows() const { return Product(ShapeView(dims, kMaxKernelRank), 0, rank - 1); }
};

// The strides of a tensor in a loop of `rank` dimensions, aligned to the right. 0 for dimensions that it does
// not have or repeats.
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

// Calls row(offsets, count) for the innermost runs `begin` to `end`, in order. offsets[k] is the start of
// operand k in elements; its `count` elements have the stride layout.inner_strides(). `work` is the amount of
// work per element.
//
// A long run is passed in pieces, unless the row has a third parameter, Pace&; it then checks by itself
// whether to stop. If its third parameter is a number, runs that follow each other along the next dimension
// are passed at once: `row(offsets, count, runs)`, and layout.next_strides() lead from one to the next.
// Returns false if told to stop.
template <int kOperands, typename Row>
bool ForRows(const Layout<kOperands>& layout, std::int64_t begin, std::int64_t end, std::int64_t work,
             Pace& pace, const Row& row) {
  constexpr bool kAsks = std::is_invocable_v<const Row&, const std::int64_t*, std::int64_t, Pace&>;
  constexpr bool kTakesRuns =
      std::is_invocable_v<const Row&, const std::int64_t*, std::int64_t, std::int64_t>;
  const int outer = layout.rank - 1;
  const std::int64_t inner = layout.inner();
  const std::int64_t piece = std::max<std::int64_t>(1, kPace / work);
  std::int64_t index[kMaxKernelRank];
  std::int64_t offsets[kOperands] = {};
  std::int64_t rest = begin;
  for (int i = outer - 1; i >= 0; --i) {
    index[i] = rest % layout.dims[i];
    rest /= layout.dims[i];
    for (int k = 0; k < kOperands; ++k) offsets[k] += index[i] * layout.strides[i][k];
  }
  const auto advance = [&](std::int64_t runs = 1) {
    for (int i = outer - 1; i >= 0; --i, runs = 1) {
      for (int k = 0; k < kOperands; ++k) offsets[k] += runs * layout.strides[i][k];
      if ((index[i] += runs) < layout.dims[i]) break;
      index[i] = 0;
      for (int k = 0; k < kOperands; ++k) offsets[k] -= layout.dims[i] * layout.strides[i][k];
    }
  };
  if constexpr (kAsks) {
    for (std::int64_t r = begin; r < end; ++r, advance()) {
      row(offsets, inner, pace);
      if (pace.stopped()) return false;
    }
  } else if (inner <= piece) {
    // Short runs are reported in groups.
    const std::int64_t most = piece / std::max<std::int64_t>(1, inner);
    for (std::int64_t r = begin; r < end;) {
      const std::int64_t last = end - r <= most ? end : r + most;
      if (!pace.Spend((last - r) * inner * work)) return false;
      if constexpr (kTakesRuns) {
        while (r < last) {
          const std::int64_t runs =
              outer == 0 ? 1 : std::min(last - r, layout.dims[outer - 1] - index[outer - 1]);
          row(offsets, inner, runs);
          r += runs;
          advance(runs);
        }
      } else {
        for (; r < last; ++r, advance()) row(offsets, inner);
      }
    }
  } else {
    for (std::int64_t r = begin; r < end; ++r, advance()) {
      const bool done = pace.For(inner, work, [&](std::int64_t first, std::int64_t last) {
        std::int64_t at[kOperands];
        for (int k = 0; k < kOperands; ++k) at[k] = offsets[k] + first * layout.inner_strides()[k];
        if constexpr (kTakesRuns)
          row(at, last - first, std::int64_t{1});
        else
          row(at, last - first);
      });
      if (!done) return false;
    }
  }
  return true;
}

// All runs in order, on this thread.
template <int kOperands, typename Row>
[[nodiscard]] Status ForAllRows(const Layout<kOperands>& layout, const Row& row) {
  Pace pace;
  return ForRows(layout, 0, layout.rows(), 1, pace, row) ? Status() : Stopped();
}

// All runs, perhaps on several threads. So a run must not write what others touch. A single run is split.
template <int kOperands, typename Row>
[[nodiscard]] Status ForEachRow(const Layout<kOperands>& layout, std::int64_t work, const Row& row) {
  constexpr bool kAsks = std::is_invocable_v<const Row&, const std::int64_t*, std::int64_t, Pace&>;
  const std::int64_t rows = layout.rows();
  const std::int64_t inner = layout.inner();
  if (inner == 0) return Status();
  if (rows != 1) {
    return ParallelFor(rows, GrainOf(kGrain, inner, work),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         ForRows(layout, begin, end, work, pace, row);
                       });
  }
  const auto part = [&](std::int64_t begin, std::int64_t end, [[maybe_unused]] auto&... pace) {
    std::int64_t offsets[kOperands];
    for (int k = 0; k < kOperands; ++k) offsets[k] = begin * layout.inner_strides()[k];
    if constexpr (std::is_invocable_v<const Row&, const std::int64_t*, std::int64_t, std::int64_t>)
      row(offsets, end - begin, std::int64_t{1});
    else
      row(offsets, end - begin, pace...);
  };
  if constexpr (kAsks) {
    return ParallelFor(inner, GrainOf(kGrain, work),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) { part(begin, end, pace); });
  } else {
    return ParallelFor(inner, GrainOf(kGrain, work),
                       [&](std::int64_t begin, std::int64_t end) { part(begin, end); });
  }
}
template <int kOperands, typename Row>
[[nodiscard]] Status ForEachRow(const Layout<kOperands>& layout, const Row& row) {
  return ForEachRow(layout, 1, row);
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Reductions share the choice of axes, and a loop in which one thread computes each result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

struct ReduceAttributes : contract::ReduceAttributes {
  // The axes come from the attribute or from `tensor`. Without any, all axes are reduced, or none with
  // noop_with_empty_axes. Marks them in `reduced` and returns the result's shape.
  Status Resolve(ShapeView x, const std::optional<TensorView>& tensor, bool (&reduced)[kMaxKernelRank],
                 Dims* result) const;
  // The checks of a kernel's arguments, and the axes as above. With `any_dtype` out need not have that of x.
  Status Check(TensorView x, const std::optional<TensorView>& tensor, TensorView out,
               bool (&reduced)[kMaxKernelRank], bool any_dtype = false) const;
};

// The loop over the elements of x [dims]. Operand 0 is the result, which has stride 0 along reduced axes.
// `count` is the number of elements per result.
Layout<2> ReduceLayout(ShapeView dims, const bool (&reduced)[kMaxKernelRank], std::int64_t* count);

// The fewest results of a thread that lie side by side.
inline constexpr std::int64_t kShortestPart = 64;

// Calls body(rest, out_offset, in_offset, pace) for parts of the loop, perhaps on several threads. Different
// parts have different results. The body asks the Pace whether to stop.
template <typename Body>
[[nodiscard]] Status ForResultsApart(const Layout<2>& layout, const Body& body) {
  if (layout.rank == 1) {
    Pace pace;
    body(layout, std::int64_t{0}, std::int64_t{0}, pace);
    return pace.status();
  }
  if (layout.strides[0][0] == 0) {
    // The next dimension is not reduced, since reduced ones side by side are merged. Parts of it have results
    // of their own. A part of the innermost dimension should be some vectors long.
    const std::int64_t least = layout.rank == 2 ? kShortestPart : 1;
    const std::int64_t rest = Product(ShapeView(layout.dims, kMaxKernelRank), 2, layout.rank);
    return ParallelFor(layout.dims[1], std::max(least, GrainOf(kGrain, layout.dims[0], rest)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         Layout<2> part = layout;
                         part.dims[1] = end - begin;
                         body(part, begin * layout.strides[1][0], begin * layout.strides[1][1], pace);
                       });
  }
  // Parts that the second cache holds, since a body may read them twice.
  constexpr std::int64_t kPart = 1 << 15;
  const std::int64_t rest = Product(ShapeView(layout.dims, kMaxKernelRank), 1, layout.rank);
  const std::int64_t rows = std::max<std::int64_t>(1, kPart / std::max<std::int64_t>(1, rest));
  return ParallelFor(layout.dims[0], GrainOf(kGrain, rest),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t i = begin; i < end && !pace.stopped(); i += rows) {
                         Layout<2> part = layout;
                         part.dims[0] = std::min(rows, end - i);
                         body(part, i * layout.strides[0][0], i * layout.strides[0][1], pace);
                       }
                     });
}

}  // namespace rewire::kernel::cpu

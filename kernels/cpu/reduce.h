// SPDX-License-Identifier: Apache-2.0
// What reductions share: which axes, and a loop in which every result belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/layout.h"
#include "kernels/cpu/shapes.h"
#include "vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

struct ReduceAttributes {
  std::vector<std::int64_t> axes;
  bool keepdims = true;
  bool keep_without_axes = false;

  void Read(Attributes& attributes);
  // The axes are the attribute's or those of `tensor`. Without any, all are reduced, or none with
  // noop_with_empty_axes. Marks them in `reduced` and gives the result's shape.
  Status Resolve(ShapeView x, const std::optional<TensorView>& tensor, bool (&reduced)[kMaxRank],
                 Dims* result) const;
  // The checks of a kernel's arguments, and the axes as above.
  Status Check(TensorView x, const std::optional<TensorView>& tensor, TensorView out,
               bool (&reduced)[kMaxRank]) const;
};

// The loop over the elements of x [dims]: operand 0 is the result, which stands still along reduced axes.
// `count` is how many elements make one result.
Layout<2> ReduceLayout(ShapeView dims, const bool (&reduced)[kMaxRank], std::int64_t* count);

// body(rest, out_offset, in_offset): parts of the loop, perhaps on several threads, whose results are apart.
template <typename Body>
void ForResultsApart(const Layout<2>& layout, const Body& body) {
  if (layout.rank == 1 || layout.strides[0][0] == 0) {
    body(layout, std::int64_t{0}, std::int64_t{0});
    return;
  }
  Layout<2> rest;
  for (int i = 1; i < layout.rank; ++i)
    rest.Append(layout.dims[i], {layout.strides[i][0], layout.strides[i][1]});
  rest.Finish();
  const std::int64_t work = std::max<std::int64_t>(1, rest.rows() * rest.inner());
  ParallelFor(layout.dims[0], std::max<std::int64_t>(1, kGrain / work),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i)
                  body(rest, i * layout.strides[0][0], i * layout.strides[0][1]);
              });
}

}  // namespace rewire::kernel::cpu

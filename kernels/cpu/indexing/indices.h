// SPDX-License-Identifier: Apache-2.0
// Tensors of positions along an axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Refuses the first index outside [-dim, dim). A piece is looked through without a branch; where the wrong
// one is matters only if there is one.
template <typename I>
Status CheckIndices(TensorView indices, std::int64_t dim, int axis) {
  const I* data = indices.data<I>();
  const std::int64_t count = indices.size();
  const auto is_wrong = [dim](I index) { return (index < -dim) | (index >= dim); };
  std::int64_t wrong = -1;
  Status status = SerialFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
    if (wrong >= 0) return;
    I any = 0;
    WideLoop([=, &any] {
      I found = 0;
      for (std::int64_t i = begin; i < end; ++i) found = static_cast<I>(found | (is_wrong(data[i]) ? 1 : 0));
      any = found;
    });
    if (any != 0) [[unlikely]]
      wrong = std::find_if(data + begin, data + end, is_wrong) - data;
  });
  if (wrong < 0) return status;
  return ValueError("element ", wrong, " of indices is ", static_cast<std::int64_t>(data[wrong]),
                    ", expected at least ", -dim, " and less than ", dim, " for axis ", axis, " of x");
}

// The position that a checked index means. Without a branch, which would be guessed wrong.
template <typename I>
std::int64_t FromEnd(I index, std::int64_t dim) {
  const auto position = static_cast<std::int64_t>(index);
  return position + ((position >> 63) & dim);
}

}  // namespace rewire::kernel::cpu

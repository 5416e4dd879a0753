// SPDX-License-Identifier: Apache-2.0
// Tensors of positions along an axis.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// Refuses the first index outside [-dim, dim).
template <typename I>
Status CheckIndices(TensorView indices, std::int64_t dim, int axis) {
  const I* data = indices.data<I>();
  const std::int64_t count = indices.size();
  std::int64_t wrong = -1;
  Status status = SerialFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; wrong < 0 && i < end; ++i) {
      if (data[i] < -dim || data[i] >= dim) [[unlikely]]
        wrong = i;
    }
  });
  if (wrong < 0) return status;
  return ValueError("element ", wrong, " of indices is ", static_cast<std::int64_t>(data[wrong]),
                    ", expected at least ", -dim, " and less than ", dim, " for axis ", axis, " of x");
}

// The position that a checked index means.
template <typename I>
std::int64_t FromEnd(I index, std::int64_t dim) {
  const auto position = static_cast<std::int64_t>(index);
  return position < 0 ? position + dim : position;
}

}  // namespace rewire::kernel::cpu

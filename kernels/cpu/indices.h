// SPDX-License-Identifier: Apache-2.0
// Tensors of positions along an axis.
#pragma once

#include <cstdint>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {

// Refuses the first index that is out of [-dim, dim).
template <typename I>
Status CheckIndices(TensorView indices, std::int64_t dim, int axis) {
  const I* data = indices.data<I>();
  const std::int64_t count = indices.size();
  for (std::int64_t i = 0; i < count; ++i) {
    if (data[i] >= -dim && data[i] < dim) [[likely]]
      continue;
    return ValueError("element ", i, " of indices is ", static_cast<std::int64_t>(data[i]),
                      ", expected at least ", -dim, " and less than ", dim, " for axis ", axis, " of x");
  }
  return Status();
}

// The position that a checked index stands for.
template <typename I>
std::int64_t FromEnd(I index, std::int64_t dim) {
  const auto position = static_cast<std::int64_t>(index);
  return position < 0 ? position + dim : position;
}

}  // namespace rewire::kernel::cpu

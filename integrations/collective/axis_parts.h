// SPDX-License-Identifier: Apache-2.0
//
// A tensor that is cut into one part for each rank along an axis.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::collective {

// As rows of `whole`, which the parts divide: a part of `size` has size * inner elements of each row.
struct AxisParts {
  std::int64_t outer = 1;  // rows
  std::int64_t whole = 0;  // the size of the whole axis
  std::int64_t inner = 1;  // elements behind the axis
  std::int64_t ranks = 1;
  const std::vector<std::int64_t>* sizes = nullptr;

  std::int64_t Begin(std::int64_t rank) const { return contract::PartBegin(*sizes, whole, ranks, rank); }
  std::int64_t Size(std::int64_t rank) const { return contract::PartSize(*sizes, whole, ranks, rank); }
  // The elements before a rank's part where the parts lie one after another.
  std::int64_t Before(std::int64_t rank) const { return Begin(rank) * outer * inner; }
  std::int64_t all() const { return outer * whole * inner; }
};

// Checks `part`, of this rank, and `together`, of all: they differ along the axis alone, as the attributes
// say. `least` is the smallest size that the attributes may give a part.
inline kernel::Status CheckParts(const contract::AxisPartsAttributes& given, const char* part_name,
                                 kernel::TensorView part, const char* together_name,
                                 kernel::TensorView together, int rank, int ranks, std::int64_t least,
                                 AxisParts* parts) {
  using kernel::ValueError;
  if (part.ndim() == 0) return ValueError(part_name, " is a scalar, expected an axis");
  int axis = 0;
  if (kernel::Status s = kernel::cpu::NormalizeAxis(given.axis, part.ndim(), &axis); !s.ok()) return s;
  if (kernel::Status s = kernel::cpu::CheckRank(together_name, together, part.ndim()); !s.ok()) return s;
  if (!given.sizes.empty() && given.sizes.size() != static_cast<std::size_t>(ranks)) {
    return ValueError("attribute 'sizes' has ", given.sizes.size(),
                      " elements, expected one for each of the ", ranks, " ranks");
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : given.sizes) {
    if (size < least)
      return ValueError("attribute 'sizes' has a size of ", size, ", expected at least ", least);
    sum = kernel::cpu::Plus(sum, size);
  }
  const std::int64_t own = part.dim(axis), whole = together.dim(axis);
  if (given.sizes.empty()) {
    if (whole != kernel::cpu::Times(own, ranks)) {
      return ValueError(together_name, " has shape ", together.dims(), " and ", part_name, " ", part.dims(),
                        ", expected ", ranks, " equal parts along axis ", axis);
    }
  } else if (own != given.sizes[static_cast<std::size_t>(rank)] || whole != sum) {
    return ValueError(together_name, " has shape ", together.dims(), " and ", part_name, " ", part.dims(),
                      ", expected sizes of ", sum, " and ", given.sizes[static_cast<std::size_t>(rank)],
                      " along axis ", axis);
  }
  *parts = {1, whole, 1, ranks, &given.sizes};
  for (int i = 0; i < part.ndim(); ++i) {
    if (i == axis) continue;
    if (part.dim(i) != together.dim(i)) {
      return ValueError(together_name, " has shape ", together.dims(), " and ", part_name, " ", part.dims(),
                        ", expected shapes that differ along axis ", axis, " alone");
    }
    (i < axis ? parts->outer : parts->inner) *= part.dim(i);
  }
  return kernel::Status();
}

// Calls copy(in_rows, in_parts, bytes) for each stretch of a rank's part: in a row of the whole tensor, and
// where the parts lie one after another. `width` is the bytes of an element.
template <typename Copy>
kernel::Status ForStretches(const AxisParts& parts, std::int64_t rank, std::int64_t width, const Copy& copy) {
  const std::int64_t bytes = parts.Size(rank) * parts.inner * width;
  const std::int64_t row = parts.whole * parts.inner * width;
  const std::int64_t in_row = parts.Begin(rank) * parts.inner * width;
  const std::int64_t before = parts.Before(rank) * width;
  if (bytes == 0) return kernel::Status();
  return kernel::cpu::SerialFor(parts.outer, 1 + bytes / 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) copy(i * row + in_row, before + i * bytes, bytes);
  });
}

}  // namespace rewire::collective

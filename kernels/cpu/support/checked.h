// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that never overflows. A file chooses attributes and the values that kernels read. So
// every product and sum of sizes that do not come from one tensor is computed here.
//
// Results are at most kMostSize. No tensor and no workspace is that large, so the comparison or request that
// follows fails. kMostSize is far below the limit of int64, so sums and small multiples of such sizes do not
// overflow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kMostSize = std::int64_t{1} << 56;

// a * b, for sizes of at least 0.
constexpr std::int64_t Times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kMostSize ? kMostSize : product;
}
template <typename... Sizes>
constexpr std::int64_t Times(std::int64_t a, std::int64_t b, std::int64_t c, Sizes... more) {
  return Times(Times(a, b), c, more...);
}

// a + b, for sizes of at least 0.
constexpr std::int64_t Plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) || sum > kMostSize ? kMostSize : sum;
}

// The product of dims[begin] to dims[end - 1].
constexpr std::int64_t Product(ShapeView dims, int begin, int end) {
  std::int64_t product = 1;
  for (int i = begin; i < end; ++i) product = Times(product, dims[static_cast<std::size_t>(i)]);
  return product;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/checked_math.h"

namespace rewire::serve {

// `factor` times all sizes of a shape: with 1 its elements, with the bytes of an element its bytes. Nothing
// if a size is below 0, or if the product does not fit, even where a later size is 0.
inline std::optional<std::uint64_t> ShapeProduct(const std::vector<std::int64_t>& shape,
                                                 std::uint64_t factor = 1) {
  std::optional<std::uint64_t> product = factor;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    product = CheckedMul(*product, static_cast<std::uint64_t>(size));
    if (!product) return std::nullopt;
  }
  return product;
}

}  // namespace rewire::serve

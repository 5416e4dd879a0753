// SPDX-License-Identifier: Apache-2.0
//
// The transforms that an encoder of lossless WebP has applied to the pixels, and how they are undone. Pixels
// are alpha, red, green and blue from the highest byte on.
#pragma once

#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

struct Transform {
  enum Kind : std::uint32_t { kPredictor, kCrossColor, kSubtractGreen, kPalette };

  Kind kind = kPredictor;
  // The bits of the sides of blocks, or how many times the pixels that share one can be halved.
  int bits = 0;
  std::int64_t width = 0;         // of what it makes
  std::uint32_t* data = nullptr;  // one pixel for each block, or 256 colors
};

inline std::int64_t BlocksOf(std::int64_t length, int bits) {
  return (length + (std::int64_t{1} << bits) - 1) >> bits;
}

// The sum of each of the four bytes.
inline std::uint32_t AddColors(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t outer = (a & 0xFF00FF00U) + (b & 0xFF00FF00U);
  const std::uint32_t inner = (a & 0x00FF00FFU) + (b & 0x00FF00FFU);
  return (outer & 0xFF00FF00U) | (inner & 0x00FF00FFU);
}

// Undoes a transform, in place or with other pixels.
Outcome Undo(const Transform& transform, std::int64_t height, Canvas& canvas, std::uint32_t** pixels);

}  // namespace rewire::kernel::image

// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/webp_transforms.h"

#include <algorithm>
#include <cstdlib>

#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::image {
namespace {

constexpr std::uint32_t kBlack = 0xFF000000U;

int PartOf(std::uint32_t color, int shift) { return static_cast<int>(color >> shift & 0xFF); }

// The halves of the sums of each byte.
std::uint32_t Mean(std::uint32_t a, std::uint32_t b) { return (((a ^ b) & 0xFEFEFEFEU) >> 1) + (a & b); }

// Applies a function to each of the four bytes; its result is held within a byte.
template <typename Body>
std::uint32_t Each(const Body& body) {
  std::uint32_t color = 0;
  for (int shift = 0; shift < 32; shift += 8)
    color |= static_cast<std::uint32_t>(std::clamp(body(shift), 0, 255)) << shift;
  return color;
}

// Selects the one of the two that is nearer to left + top - corner.
std::uint32_t Select(std::uint32_t left, std::uint32_t top, std::uint32_t corner) {
  int to_left = 0, to_top = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    to_left += std::abs(PartOf(top, shift) - PartOf(corner, shift));
    to_top += std::abs(PartOf(left, shift) - PartOf(corner, shift));
  }
  return to_left < to_top ? left : top;
}

// `above` points to the pixel above the predicted one.
std::uint32_t Predict(std::uint32_t mode, std::uint32_t left, const std::uint32_t* above) {
  const std::uint32_t top = above[0], corner = above[-1], next = above[1];
  switch (mode) {
    case 1:
      return left;
    case 2:
      return top;
    case 3:
      return next;
    case 4:
      return corner;
    case 5:
      return Mean(Mean(left, next), top);
    case 6:
      return Mean(left, corner);
    case 7:
      return Mean(left, top);
    case 8:
      return Mean(corner, top);
    case 9:
      return Mean(top, next);
    case 10:
      return Mean(Mean(left, corner), Mean(top, next));
    case 11:
      return Select(left, top, corner);
    case 12:
      return Each(
          [&](int shift) { return PartOf(left, shift) + PartOf(top, shift) - PartOf(corner, shift); });
    case 13: {
      const std::uint32_t mean = Mean(left, top);
      return Each(
          [&](int shift) { return PartOf(mean, shift) + (PartOf(mean, shift) - PartOf(corner, shift)) / 2; });
    }
    default:
      return kBlack;
  }
}

// One row, of which `pixels` is the first pixel. The row above it lies before it.
void AddPredictions(const Transform& transform, std::int64_t y, std::uint32_t* pixels) {
  const std::int64_t width = transform.width;
  const std::uint32_t* modes = transform.data + (y >> transform.bits) * BlocksOf(width, transform.bits);
  for (std::int64_t x = 0; x < width; ++x) {
    std::uint32_t predicted = kBlack;
    if (y == 0) {
      if (x > 0) predicted = pixels[x - 1];
    } else if (x == 0) {
      predicted = pixels[-width];
    } else {
      predicted = Predict(modes[x >> transform.bits] >> 8 & 15, pixels[x - 1], pixels + x - width);
    }
    pixels[x] = AddColors(pixels[x], predicted);
  }
}

void AddColorsOfGreen(const Transform& transform, std::int64_t y, std::uint32_t* pixels) {
  const std::uint32_t* factors =
      transform.data + (y >> transform.bits) * BlocksOf(transform.width, transform.bits);
  const auto product = [](std::uint32_t factor, int color) {
    return static_cast<std::int8_t>(factor) * static_cast<std::int8_t>(color) >> 5;
  };
  for (std::int64_t x = 0; x < transform.width; ++x) {
    const std::uint32_t factor = factors[x >> transform.bits], color = pixels[x];
    const int green = PartOf(color, 8);
    const int red = (PartOf(color, 16) + product(factor, green)) & 0xFF;
    const int blue = (PartOf(color, 0) + product(factor >> 8, green) + product(factor >> 16, red)) & 0xFF;
    pixels[x] =
        (color & 0xFF00FF00U) | static_cast<std::uint32_t>(red) << 16 | static_cast<std::uint32_t>(blue);
  }
}

void AddGreen(std::int64_t width, std::uint32_t* pixels) {
  for (std::int64_t x = 0; x < width; ++x) {
    const std::uint32_t green = pixels[x] >> 8 & 0xFF;
    pixels[x] = AddColors(pixels[x], green << 16 | green);
  }
}

void TakeColors(const Transform& transform, const std::uint32_t* from, std::uint32_t* to) {
  const int bits = 8 >> transform.bits;
  for (std::int64_t x = 0; x < transform.width; ++x) {
    const auto within = static_cast<int>(x & ((std::int64_t{1} << transform.bits) - 1));
    const std::uint32_t index = from[x >> transform.bits] >> 8 & 0xFF;
    to[x] = transform.data[index >> (within * bits) & ((1U << bits) - 1)];
  }
}

}  // namespace

Outcome Undo(const Transform& transform, std::int64_t height, Canvas& canvas, std::uint32_t** pixels) {
  const std::int64_t width = transform.width;
  const std::uint32_t* stored = *pixels;
  if (transform.kind == Transform::kPalette) {
    *pixels = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, width, height)));
    if (*pixels == nullptr) return Outcome::kFailed;
  }
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint32_t* row = *pixels + y * width;
    if (!canvas.Spend(8 * width)) return Outcome::kFailed;
    switch (transform.kind) {
      case Transform::kPredictor:
        AddPredictions(transform, y, row);
        break;
      case Transform::kCrossColor:
        AddColorsOfGreen(transform, y, row);
        break;
      case Transform::kSubtractGreen:
        AddGreen(width, row);
        break;
      case Transform::kPalette:
        TakeColors(transform, stored + y * BlocksOf(width, transform.bits), row);
        break;
    }
  }
  return Outcome::kDone;
}

}  // namespace rewire::kernel::image

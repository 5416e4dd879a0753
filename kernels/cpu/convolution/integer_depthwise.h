// SPDX-License-Identifier: Apache-2.0
//
// One line of a depthwise convolution (each channel has its own weights) of bytes, channels last: the
// innermost loop of rewire.packed.depthwise_integer.
//
// CPUs add products of bytes in fours. Here the four are taps of a channel: four rows of the window, or four
// columns of a window that has one row. They are called a quad. The pixels of the image are put side by side
// in quads once for each column, and all windows over that column read them. Sums are exact and wrap.
#pragma once

#include <array>
#include <cstdint>

#include "rewire/kernels/cpu/product/integer_panels.h"

namespace rewire::kernel::cpu {

// The most quads of a window of kMostTaps taps: two rows of half as many columns.
inline constexpr std::int64_t kMostQuads = 128;

// Channels are run in groups of so many.
inline constexpr std::int64_t kDepthwiseGroup = 64;
constexpr std::int64_t DepthwiseGroups(std::int64_t channels) {
  return (channels + kDepthwiseGroup - 1) / kDepthwiseGroup;
}
// A vector of sums may cover several positions of few channels, so operands go on from the first channel
// behind the last one, for as many as a vector has.
inline constexpr std::int64_t kArrangedChannels = kDepthwiseGroup + 16;
// The bytes of an arranged group: of each channel its weights, and its start, zero, scale and bias.
constexpr std::int64_t ArrangedBytes(std::int64_t quads) { return kArrangedChannels * kQuad * (quads + 4); }

struct IntegerDepthwise {
  std::int64_t channels;
  std::int64_t input, stride;  // columns of the image, and between two positions
  // A window has `columns` columns of `rows` quads each. The columns lie `dilation` apart. The members of a
  // quad are rows if `member` is 0, otherwise columns that lie so far apart.
  std::int64_t columns, rows, dilation, member;
  std::int64_t spacing;         // divides stride and dilation
  const std::uint8_t *x, *end;  // the image's memory
  bool is_signed;
  std::uint8_t border;  // what x has beyond its border, as an unsigned byte
  // The packed weights (integer_panels.h) have a segment, of `rows` quads, for each of the window's columns.
  // A member without a tap has the weight 0.
  const std::int8_t* w;
  const std::int32_t *start, *w_zero;          // as in an IntegerTile
  std::array<std::uint32_t, kMostQuads> taps;  // of each quad: a byte 1 for each member that is a tap
  IntegerFinish finish;
  std::uint8_t* arranged;  // [DepthwiseGroups(channels), ArrangedBytes(quads())]

  std::int64_t quads() const { return columns * rows; }
};

struct IntegerDepthwiseKernel {
  // Writes all operands of a group's channels to `arranged`, in the order in which `run` reads them.
  void (*arrange)(const IntegerDepthwise& call, std::int64_t group);
  // Computes a group's channels of `count` positions, whose first window begins at `column`. rows[4 * q + m]
  // is where member m of quad q reads column 0 of the image. It is null for rows beyond the border. `out` is
  // the first position.
  void (*run)(const IntegerDepthwise& call, std::int64_t group, const std::uint8_t* const* rows,
              std::int64_t column, std::int64_t count, void* out);
};

// The kernel of the best instruction set that this CPU and the build support. If `any_instruction` is false,
// it uses only instructions that every CPU of the set has.
IntegerDepthwiseKernel ChooseIntegerDepthwiseKernel(bool any_instruction);

// The same, chosen once per process.
const IntegerDepthwiseKernel& BestIntegerDepthwiseKernel();

}  // namespace rewire::kernel::cpu

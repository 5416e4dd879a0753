// SPDX-License-Identifier: Apache-2.0
//
// Rows of floats as whole numbers of 16 or 24 bits: the left side of products by packed weights of bytes
// (integer_panels.h). Each group of a row has a scale of its own, and each number is two or three signed
// bytes, which are multiplied by the weights as bytes are. A product of bytes takes a quarter of the time of
// one of floats.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/integer_panels.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kSplitGroup = 256;
inline constexpr int kMostLimbs = 3;  // the bytes of a number, the highest first
// The most rows of a tile. All their sums are in registers.
constexpr int SplitRowsAtOnce(int limbs) { return limbs == 2 ? 4 : 3; }

// The same of a product by tiles.
inline constexpr int kSplitRowsOfBlock = 16;
constexpr int SplitRowsOfBlock(int limbs) { return limbs == 2 ? kSplitRowsOfBlock : 10; }

constexpr std::int64_t SplitGroups(std::int64_t depth) { return (depth + kSplitGroup - 1) / kSplitGroup; }

// Rows of numbers. The bytes of row i begin at bytes + i * limbs * limb_bytes: all first bytes, then all
// second ones. limb_bytes is at least PaddedDepth(depth). Its group g has scales[i * groups + g]. The sums of
// that group's bytes, times -128, begin at starts[limbs * (i * groups + g)], as the weights are 128 higher
// while they are multiplied.
struct SplitRows {
  const std::int8_t* bytes;
  int limbs;
  std::int64_t depth, limb_bytes;
  const float* scales;
  const std::int32_t* starts;
};

// out(i, j) = activation(sum over k of number(i, k) * its scale * panel(k, j) * scale[j] + bias[j] +
// addend(i, j)) for i < count. Rows whose first scale is NaN are left out.
struct SplitTile {
  SplitRows rows;
  int count;  // at most SplitRowsAtOnce(limbs), or by tiles SplitRowsOfBlock(limbs)
  const std::int8_t* panel;
  std::int64_t width, columns;  // of the panel, and those in use
  const float* scale;
  const float* bias;    // null: zeros
  const float* addend;  // as out; null: zeros
  float* out;
  std::int64_t step;  // elements from one row of out to the next
  Activation activation;
};

struct ByteRowKernels {
  // Writes a row of bytes, zeros up to limb_bytes too: each x[k] is its number times the scale of its group,
  // rounded to the nearest. False if no scale serves a group: something is not finite, or all is so small
  // that there is no inverse.
  bool (*split)(const float* x, std::int64_t depth, int limbs, std::int64_t limb_bytes, std::int8_t* bytes,
                float* scales, std::int32_t* starts);
  // Null if the CPU multiplies bytes no faster than floats.
  void (*multiply)(const SplitTile& tile);
  // For products by tiles (tiles.h), whose rows are those of bytes. Adds the sums of group g to those of the
  // numbers, [kSplitRowsOfBlock, kPanelWidth].
  void (*join)(const SplitTile& tile, std::int64_t g, const std::int32_t* sums, float* totals);
  // Does what follows the last group.
  void (*finish)(const SplitTile& tile, const float* totals);
  // The weights of rows [first, first + count) of a panel as floats times scale[j], side by side for each
  // row. `first` is a multiple of 4; `to` has room for `count` rounded up to one, and scale `width` elements.
  void (*expand)(const std::int8_t* panel, std::int64_t width, std::int64_t first, std::int64_t count,
                 const float* scale, float* to);
};

// The functions of the best instruction set that this CPU and the build support.
ByteRowKernels ChooseByteRowKernels();

// The same, chosen once per process.
const ByteRowKernels& BestByteRowKernels();

}  // namespace rewire::kernel::cpu

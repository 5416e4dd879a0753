// SPDX-License-Identifier: Apache-2.0
//
// Products of rows of bytes by signed bytes in packed panels: exact 32-bit sums, which wrap, and the
// conversion of the sums. This is the innermost loop of packed_integer_matmul.cc and packed_integer_conv.cc.
//
// Panels have the columns of panels.h. In each column, the bytes of four successive k lie side by side,
// because the instructions for such sums read them so. Byte (k, j) is panel[(k / 4 * width + j) * 4 + k % 4].
// A depth that is no multiple of 4 is padded with 0. The layout is the same on every CPU.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/panels/panels.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kQuad = 4;

constexpr std::int64_t PaddedDepth(std::int64_t depth) { return (depth + kQuad - 1) / kQuad * kQuad; }

// How the sums are converted. Floats are sum * scale[j] + bias[j], followed by the activation. Integers are
// these floats rounded to the nearest integer (ties to even), plus zero, limited to [least, most].
struct IntegerFinish {
  enum Kind { kSums, kFloats, kUnsigned, kSigned };  // i32, f32, u8, i8
  Kind kind = kSums;
  const float* scale = nullptr;  // [columns]
  const float* bias = nullptr;   // [columns]; null: zeros
  Activation activation;         // of floats alone
  float zero = 0, least = 0, most = 0;
};

// Computes sums for i < count and j < columns: start[j] + sum over s, k of (rows[s * count + i][k] * panel[s
// * depth + k, j]) - row sum * w_zero[j]. The rows are in segments as in a PanelTile.
struct IntegerTile {
  const std::uint8_t* const* rows;  // each may be read up to a multiple of 4 bytes
  int count;                        // at most IntegerPanelKernel::rows
  std::int64_t segments, depth;
  const std::int8_t* panel;     // a segment has PaddedDepth(depth) bytes a column
  std::int64_t width, columns;  // of the panel
  const std::int32_t* start;    // [columns]
  const std::int32_t* w_zero;   // [columns]; null: zeros
  IntegerFinish finish;         // its vectors begin at the panel's first column
  void* out;
  std::int64_t step;                       // elements from one row of out to the next
  const std::int32_t* row_sums = nullptr;  // [count], of the rows' bytes; null: w_zero has them computed
};

struct IntegerPanelKernel {
  int rows;              // the most rows, with which it is fastest; at most kMostPanelRows
  int rows_in_segments;  // with so many it is fastest where they lie in several segments; at most `rows`
  int RowsFor(std::int64_t segments) const { return segments == 1 ? rows : rows_in_segments; }

  void (*run)(const IntegerTile& tile);
  // Computes the tile's row_sums, of up to kMostPanelRows rows. Several panels can share them.
  void (*sum_rows)(const IntegerTile& tile, std::int32_t* row_sums);
  // Does what follows the products of any number of rows. Row i of the products begins at products + i *
  // kPanelWidth. `row_sums` has the sum of each row, if there are w_zero. The tile's rows and panel are not
  // read.
  void (*finish)(const IntegerTile& tile, const std::int32_t* products, const std::int32_t* row_sums);
};

// The kernel of the best instruction set that this CPU and the build support. If `any_instruction` is false,
// it uses only instructions that every CPU of the set has.
IntegerPanelKernel ChooseIntegerPanelKernel(bool any_instruction);

// The same, chosen once per process.
const IntegerPanelKernel& BestIntegerPanelKernel();

}  // namespace rewire::kernel::cpu

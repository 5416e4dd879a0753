// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by weights in packed panels. This is the innermost loop of the kernels of
// packed_matmul.cc and packed_conv.cc and of the recurrent layers.
//
// A panel is kPanelWidth columns of a matrix [depth, columns], side by side for each k: element (k, j) is
// panel[k * kPanelWidth + j]. If the last panel has at most kHalfPanel columns, it is only that wide. Columns
// beyond the matrix are 0. The layout is the same on every CPU, so a compiler can write it into a file.
//
// The elements of rows and panels are units of four bytes, and depth counts units. A unit is a float, or a
// pair: the bf16 of two successive k, the first in the lower half. A depth that is odd in bf16 is padded with
// 0. Products of pairs are exact, and added in f32. The order of the additions differs between CPUs.
// Panels may hold f16 for rows of floats. Such a unit has two bytes, and becomes a float in a register.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/panels/addend.h"
#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kPanelWidth = 32;
inline constexpr std::int64_t kHalfPanel = 16;
// The most columns that a kernel accepts.
inline constexpr std::int64_t kMostColumns = std::int64_t{1} << 31;

// The number of columns with the last panel's padding.
constexpr std::int64_t PackedColumns(std::int64_t columns) {
  return (columns + kHalfPanel - 1) / kHalfPanel * kHalfPanel;
}
constexpr std::int64_t PanelCount(std::int64_t columns) { return (columns + kPanelWidth - 1) / kPanelWidth; }
// The width of panel i, and, below, how many columns of the matrix it contains.
constexpr std::int64_t WidthOfPanel(std::int64_t i, std::int64_t columns) {
  return columns - i * kPanelWidth <= kHalfPanel ? kHalfPanel : kPanelWidth;
}
constexpr std::int64_t UsedOfPanel(std::int64_t i, std::int64_t columns) {
  return columns - i * kPanelWidth < kPanelWidth ? columns - i * kPanelWidth : kPanelWidth;
}

// The number of pairs that hold so many bf16.
constexpr std::int64_t PairsOf(std::int64_t depth) { return depth / 2 + depth % 2; }

// out(i, j) = activation(bias[j] + addend(i, j) + sum over s, k of rows[s * count + i][k] * w(s * depth + k,
// j)), for i < count, j < columns. The rows are in segments that lie anywhere: the window of a convolution
// has as many as it has rows.
//
// `rows` and `panel` address units. Pairs are never read as floats.
struct PanelTile {
  const float* const* rows;
  int count;  // at most PanelKernel::rows
  std::int64_t segments, depth;
  const float* panel;  // the first of w's panels, which follow each other in memory
  std::int64_t columns;
  const float* bias;  // [columns]; null: zeros
  Addend addend;      // as out, with out's step
  float* out;
  std::int64_t step;  // elements from one row of out to the next
  Activation activation;
  bool backward = false;             // the last panel first
  std::uint16_t* rounded = nullptr;  // takes the place of out: the same rounded to bf16
  // The units of each panel before the first segment's, and all of them: where segments are a part of them.
  std::int64_t skipped = 0, panel_depth = 0;  // 0: as many as the segments have
  // True for two panels that are multiplied at once if both are as wide as can be. Only with at most
  // PanelKernel::wide_rows rows, and not backward.
  bool wide = false;
  // Tiles of several rows fetch lines of memory into the second cache meanwhile: successive ones, half as
  // many as the panel has. The first one begins so many units behind the panel's own first one.
  std::int64_t ahead = 0;
};

// PanelTile::ahead for the tile of that number, of those that go by one panel of `size` units: the first two
// fetch half of the next panel each. Where rows are few, waiting for it takes longer than products. A CPU has
// few places for lines that it waits for, some 16. Its own prefetcher has more, and follows successive lines.
constexpr std::int64_t AheadOf(std::int64_t number, std::int64_t size) {
  return number < 2 ? size + number * (size / 2) : 0;
}

inline constexpr int kMostPanelRows = 8;

struct PanelKernel {
  int rows;       // the most rows, with which it is fastest; at most kMostPanelRows
  int wide_rows;  // the most rows of a tile that is wide, with which it is fastest; 0: tiles are not
  void (*run)(const PanelTile& tile);
};

// Panels hold units of one of these kinds.
enum class PanelUnit : std::uint8_t { kFloat, kPair, kHalf };

// The units of panels from number `index` on. Their type is that of floats, whatever they are.
inline const float* UnitsAt(const float* panels, std::int64_t index, PanelUnit unit) {
  if (unit != PanelUnit::kHalf) return panels + index;
  return reinterpret_cast<const float*>(reinterpret_cast<const std::uint16_t*>(panels) + index);
}

// How many panels tiles of several rows should take: two where one does not stay in the first cache anyway.
inline std::int64_t PanelsAtOnce(const PanelKernel& kernel, std::int64_t depth) {
  constexpr std::int64_t kDeep = 256;
  return kernel.wide_rows > 0 && depth > kDeep ? 2 : 1;
}
// The most rows of a tile of so many columns; makes it wide where these are two whole panels, or nearly.
inline int MakeWide(const PanelKernel& kernel, PanelTile* tile) {
  tile->wide = kernel.wide_rows > 0 && tile->columns > kPanelWidth + kHalfPanel;
  return tile->wide ? kernel.wide_rows : kernel.rows;
}

// How many of `left` rows the next tile takes, such that no small tile is left over.
inline int RowsOfTile(std::int64_t left, int most) {
  if (left <= most) return static_cast<int>(left);
  return left < 2 * most ? static_cast<int>((left + 1) / 2) : most;
}

// Tiles of so many rows and more add the products of each row in one order; smaller ones do not.
inline constexpr int kRowsInOneOrder = 4;

// Like RowsOfTile, for the rows from *i on of [begin, end). If few are left, *i moves back to rows that have
// been computed, so that each row's sums are the same wherever a range of at least kRowsInOneOrder rows ends.
inline int RowsOfEqualTile(std::int64_t begin, std::int64_t end, int most, std::int64_t* i) {
  const int count = RowsOfTile(end - *i, most);
  if (count >= kRowsInOneOrder || end - begin < kRowsInOneOrder) return count;
  *i = end - kRowsInOneOrder;
  return kRowsInOneOrder;
}

// The work of a tile of at most kMostPanelRows rows and one panel, in simple operations. Columns are
// multiplied side by side. `depth` is at most kMostSize, so nothing here overflows.
constexpr std::int64_t ProductsOf(int rows, std::int64_t depth) { return 16 + 2 * rows * depth; }

// The kernel of the best instruction set that this CPU and the build support, for floats.
PanelKernel ChoosePanelKernel();

// The same for pairs. If `any_instruction` is false, it uses only instructions that every CPU of the set has.
PanelKernel ChoosePairPanelKernel(bool any_instruction);

// The same for rows of floats by panels of f16.
PanelKernel ChooseHalfPanelKernel();

// One of these, chosen once per process.
const PanelKernel& BestPanelKernel(PanelUnit unit = PanelUnit::kFloat);

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Products of rows by weights that were packed ahead into panels: the innermost loop of the kernels of
// packed_matmul.cc, packed_conv.cc and packed_recurrent.cc.
//
// A panel is kPanelWidth columns of a matrix [depth, columns], side by side for each k: element (k, j) is
// panel[k * kPanelWidth + j]. A last panel of at most kHalfPanel columns is that narrow; columns that the
// matrix lacks are 0. The layout is the same on every CPU, so that a compiler can write it into a file.
#pragma once

#include <cstdint>

#include "kernels/cpu/activation_attribute.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kPanelWidth = 32;
inline constexpr std::int64_t kHalfPanel = 16;
// More columns a kernel does not take.
inline constexpr std::int64_t kMostColumns = std::int64_t{1} << 31;

// Columns with those that fill up the last panel.
constexpr std::int64_t PackedColumns(std::int64_t columns) {
  return (columns + kHalfPanel - 1) / kHalfPanel * kHalfPanel;
}
constexpr std::int64_t PanelCount(std::int64_t columns) { return (columns + kPanelWidth - 1) / kPanelWidth; }
// Of panel i: its width, and how many columns of the matrix it has.
constexpr std::int64_t WidthOfPanel(std::int64_t i, std::int64_t columns) {
  return columns - i * kPanelWidth <= kHalfPanel ? kHalfPanel : kPanelWidth;
}
constexpr std::int64_t UsedOfPanel(std::int64_t i, std::int64_t columns) {
  return columns - i * kPanelWidth < kPanelWidth ? columns - i * kPanelWidth : kPanelWidth;
}

// out(i, j) = activation(bias[j] + addend(i, j) + sum over s, k of rows[s * count + i][k] * w(s * depth + k,
// j)), for i < count, j < columns. The rows are in segments that lie anywhere: the window of a convolution
// has as many as it has rows.
struct PanelTile {
  const float* const* rows;
  int count;  // at most PanelKernel::rows
  std::int64_t segments, depth;
  const float* panel;  // the first of those of w, which lie one after the other
  std::int64_t columns;
  const float* bias;    // [columns]; null: zeros
  const float* addend;  // as out, with out's step; null: zeros
  float* out;
  std::int64_t step;  // elements from one row of out to the next
  Activation activation;
  bool backward = false;  // the last panel first
};

inline constexpr int kMostPanelRows = 8;

struct PanelKernel {
  int rows;  // the most, at which it is fastest; at most kMostPanelRows
  void (*run)(const PanelTile& tile);
};

// How many of `left` rows the next tile takes, so that no small one is left over.
inline int RowsOfTile(std::int64_t left, int most) {
  if (left <= most) return static_cast<int>(left);
  return left < 2 * most ? static_cast<int>((left + 1) / 2) : most;
}

// That of the best instruction set which this CPU and the build have.
PanelKernel ChoosePanelKernel();

// The same, chosen once per process.
const PanelKernel& BestPanelKernel();

}  // namespace rewire::kernel::cpu

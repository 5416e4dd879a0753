// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that move elements.
#pragma once

#include <initializer_list>
#include <string_view>

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Copies.
inline constexpr char kCopy[] = "rewire.copy";
inline constexpr char kExpand[] = "rewire.expand";
inline constexpr char kConcat[] = "rewire.concat";
inline constexpr char kSplit[] = "rewire.split";

// Rearrangement.
inline constexpr char kTranspose[] = "rewire.transpose";
inline constexpr char kSlice[] = "rewire.slice";
inline constexpr char kDynamicSlice[] = "rewire.dynamic_slice";
inline constexpr char kTile[] = "rewire.tile";
inline constexpr char kReverseSequence[] = "rewire.reverse_sequence";
inline constexpr char kTrilu[] = "rewire.trilu";

// Borders.
inline constexpr char kPad[] = "rewire.pad";
inline constexpr char kDynamicPad[] = "rewire.dynamic_pad";
inline constexpr char kShapeDynamicPad[] = "rewire.shape.dynamic_pad";

// Kernels whose outputs are elements of the first input, in other places; other inputs say where.
constexpr bool OnlyMoves(std::string_view kernel) {
  for (const std::string_view moves : {kSplit, kTranspose, kSlice, kDynamicSlice}) {
    if (kernel == moves) return true;
  }
  return false;
}

inline constexpr Cost kMovementCosts[] = {
    {kConcat, 1}, {kCopy, 1},  {kDynamicPad, 2}, {kDynamicSlice, 1}, {kExpand, 1}, {kPad, 2},
    {kSlice, 1},  {kSplit, 1}, {kTile, 1},       {kTranspose, 3},    {kTrilu, 2},
};

}  // namespace rewire::names

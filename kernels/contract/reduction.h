// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that reduce axes or run along one.
#pragma once

#include <string_view>

#include "rewire/kernels/contract/cost.h"
#include "rewire/kernels/contract/names.h"

namespace rewire::names {

// The CPU's kernels and a device's that reduce the axes of one tensor.
constexpr bool IsReduction(std::string_view name) { return StartsWith(Stem(name), "reduce_"); }

// Reductions.
inline constexpr char kReduceSum[] = "rewire.reduce_sum";
inline constexpr char kReduceMean[] = "rewire.reduce_mean";
inline constexpr char kReduceProd[] = "rewire.reduce_prod";
inline constexpr char kReduceMax[] = "rewire.reduce_max";
inline constexpr char kReduceMin[] = "rewire.reduce_min";
inline constexpr char kReduceSumSquare[] = "rewire.reduce_sum_square";
inline constexpr char kReduceL1[] = "rewire.reduce_l1";
inline constexpr char kReduceL2[] = "rewire.reduce_l2";
inline constexpr char kReduceLogSumExp[] = "rewire.reduce_log_sum_exp";

// Positions of extremes.
inline constexpr char kArgMax[] = "rewire.argmax";
inline constexpr char kArgMin[] = "rewire.argmin";

// Along an axis.
inline constexpr char kCumSum[] = "rewire.cumsum";
inline constexpr char kCumProd[] = "rewire.cumprod";
inline constexpr char kHardmax[] = "rewire.hardmax";

inline constexpr Cost kReductionCosts[] = {
    {kCumSum, 4},     {kReduceL1, 1},  {kReduceL2, 1},  {kReduceMax, 1},
    {kReduceMean, 1}, {kReduceMin, 1}, {kReduceSum, 1}, {kReduceSumSquare, 1},
};

}  // namespace rewire::names

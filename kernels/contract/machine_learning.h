// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of ai.onnx.ml, and what becomes of the weights of trees.
#pragma once

#include <initializer_list>
#include <string_view>

namespace rewire::names {

// Decision trees.
inline constexpr char kTreeEnsemble[] = "rewire.tree_ensemble";

// How the trees' weights become a result, and the values of the attribute `aggregate` in the same order.
enum class TreeAggregate { kSum, kAverage, kMin, kMax };
inline const std::initializer_list<std::string_view> kTreeAggregates = {"SUM", "AVERAGE", "MIN", "MAX"};

// Distances and classes of pairs.
inline constexpr char kSquaredDistance[] = "rewire.squared_distance";
inline constexpr char kPairwiseCoupling[] = "rewire.pairwise_coupling";

}  // namespace rewire::names

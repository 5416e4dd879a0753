// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that take elements by index or by what they are.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Indexing.
inline constexpr char kGather[] = "rewire.gather";
inline constexpr char kGatherElements[] = "rewire.gather_elements";
inline constexpr char kLookUp[] = "rewire.look_up";
inline constexpr char kOneHot[] = "rewire.one_hot";
inline constexpr char kShapeOneHot[] = "rewire.shape.one_hot";

// Scatter and gather of slices.
inline constexpr char kScatterElements[] = "rewire.scatter_elements";
inline constexpr char kScatterNd[] = "rewire.scatter_nd";
inline constexpr char kGatherNd[] = "rewire.gather_nd";
inline constexpr char kShapeGatherNd[] = "rewire.shape.gather_nd";

// Order.
inline constexpr char kTopK[] = "rewire.top_k";
inline constexpr char kShapeTopK[] = "rewire.shape.top_k";
inline constexpr char kUnique[] = "rewire.unique";
inline constexpr char kShapeUnique[] = "rewire.shape.unique";

// Sizes that depend on data.
inline constexpr char kNonZero[] = "rewire.non_zero";
inline constexpr char kShapeNonZero[] = "rewire.shape.non_zero";
inline constexpr char kCompress[] = "rewire.compress";
inline constexpr char kShapeCompress[] = "rewire.shape.compress";

// N-grams.
inline constexpr char kTfIdf[] = "rewire.tfidf";

inline constexpr Cost kIndexingCosts[] = {
    {kGather, 1}, {kGatherElements, 4},  {kGatherNd, 2},  {kLookUp, 8},
    {kOneHot, 2}, {kScatterElements, 4}, {kScatterNd, 4},
};

}  // namespace rewire::names

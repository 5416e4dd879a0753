// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of ai.onnx.ml.
#pragma once

namespace rewire::names {

// Decision trees.
inline constexpr char kTreeEnsemble[] = "rewire.tree_ensemble";

// Distances and classes of pairs.
inline constexpr char kSquaredDistance[] = "rewire.squared_distance";
inline constexpr char kPairwiseCoupling[] = "rewire.pairwise_coupling";

}  // namespace rewire::names

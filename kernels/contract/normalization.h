// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of normalization.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Normalization.
inline constexpr char kLayerNorm[] = "rewire.layer_norm";
inline constexpr char kRmsNorm[] = "rewire.rms_norm";
inline constexpr char kGroupNorm[] = "rewire.group_norm";
inline constexpr char kLrn[] = "rewire.lrn";
inline constexpr char kBatchNorm[] = "rewire.batch_norm";

// Softmax.
inline constexpr char kSoftmax[] = "rewire.softmax";
inline constexpr char kLogSoftmax[] = "rewire.log_softmax";

inline constexpr Cost kNormalizationCosts[] = {
    {kBatchNorm, 2}, {kGroupNorm, 3}, {kLayerNorm, 3}, {kLogSoftmax, 6}, {kRmsNorm, 3}, {kSoftmax, 6},
};

}  // namespace rewire::names

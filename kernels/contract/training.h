// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of losses and training.
#pragma once

namespace rewire::names {

// Losses.
inline constexpr char kNllLoss[] = "rewire.nll_loss";

// Training.
inline constexpr char kAdagrad[] = "rewire.adagrad";
inline constexpr char kAdam[] = "rewire.adam";
inline constexpr char kMomentum[] = "rewire.momentum";

}  // namespace rewire::names

// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of signal processing.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

inline constexpr char kDft[] = "rewire.dft";
inline constexpr char kShapeDft[] = "rewire.shape.dft";
inline constexpr char kStft[] = "rewire.stft";
inline constexpr char kShapeStft[] = "rewire.shape.stft";
inline constexpr char kWindow[] = "rewire.window";
inline constexpr char kMelWeightMatrix[] = "rewire.mel_weight_matrix";
inline constexpr char kShapeMelWeightMatrix[] = "rewire.shape.mel_weight_matrix";

inline constexpr Cost kSignalCosts[] = {
    {kMelWeightMatrix, 2},
    {kWindow, 20},
};

}  // namespace rewire::names

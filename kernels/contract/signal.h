// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of signal processing, and the sizes of transforms.
#pragma once

#include <cstdint>

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

namespace rewire::contract {

// A complex number has two parts. An inverse transform of half a spectrum gives a real signal.
constexpr std::int64_t DftParts(bool inverse, bool onesided) { return inverse && onesided ? 1 : 2; }

// How many numbers of a transform of so many are kept. `Size` is WindowSize or an expression.
template <typename Size>
Size DftBins(const Size& length, bool onesided) {
  return onesided ? Size::FloorDiv(length, Size(2)) + Size(1) : length;
}

}  // namespace rewire::contract

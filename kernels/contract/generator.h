// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that make tensors of numbers.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Generators.
inline constexpr char kArange[] = "rewire.arange";
inline constexpr char kEye[] = "rewire.eye";

// Random numbers.
inline constexpr char kRandomUniform[] = "rewire.random_uniform";
inline constexpr char kRandomNormal[] = "rewire.random_normal";
inline constexpr char kBernoulli[] = "rewire.bernoulli";
inline constexpr char kMultinomial[] = "rewire.multinomial";

inline constexpr Cost kGeneratorCosts[] = {
    {kArange, 2},
    {kEye, 1},
};

}  // namespace rewire::names

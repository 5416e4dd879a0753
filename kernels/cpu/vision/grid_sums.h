// SPDX-License-Identifier: Apache-2.0
// Sums over elements of an image that lie apart, by the CPU's instructions that load such elements.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// to[p] = the sum of weights[k * step + p] * elements[offsets[k * step + p]] for k < taps, in this order; an
// offset below 0 stands for an element that is 0.
using SumGridTaps = void (*)(const float* elements, const std::int32_t* offsets, const float* weights,
                             std::int64_t step, std::int64_t taps, std::int64_t points, float* to);

// The function of the chosen instruction set, or null where loads of single elements are as fast: such
// instructions are slow on CPUs without vectors of 64 bytes.
SumGridTaps ChooseSumGridTaps();

}  // namespace rewire::kernel::cpu

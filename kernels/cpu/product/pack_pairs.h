// SPDX-License-Identifier: Apache-2.0
//
// Rounds rows of floats to rows of pairs of bf16 (panels.h): the left side of products by weights in bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// Rounds rows of `depth` floats to the nearest bf16 (ties to even). Rows of an odd depth get a 0 more. NaN
// stays one. Floats below the least normal one may become 0.
using RoundFloats = void (*)(const float* from, std::int64_t rows, std::int64_t depth, std::uint16_t* to);

// The function of the best instruction set that this CPU and the build support. If `any_instruction` is
// false, it uses only instructions that every CPU of the set has.
RoundFloats ChooseRoundFloats(bool any_instruction);

// Rounds `count` floats, and writes zeros behind them up to a whole line of 64 bytes.
void RoundToLines(const float* from, std::int64_t count, std::byte* to);

// Rounds `rows` rows of `depth` floats to rows of PairsOf(depth) units, on the calling thread. Returns false
// if told to stop.
bool RoundRows(const float* from, std::int64_t rows, std::int64_t depth, float* to, Pace& pace);

// The same on the program's threads, if it is worth it. Call it only from the kernel's own thread.
[[nodiscard]] Status RoundAllRows(const float* from, std::int64_t rows, std::int64_t depth, float* to);

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Runs one step of a FusedProgram over a block of floats, with the vectors of the CPU that the process runs
// on.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/fused_program.h"

namespace rewire::kernel::cpu {

// The elements of an operand: those at `data`, or `value` for all where `data` is null. The first operand of
// a step that ReadsBf16() may have `bf16` in place of both.
struct FusedElements {
  const float* data;
  float value;
  const std::uint16_t* bf16 = nullptr;
};

// The memory that a step writes: floats, or for a step that ReadsBf16() the same rounded to bf16. Either may
// be the elements of an operand.
struct FusedResult {
  float* floats;
  std::uint16_t* bf16 = nullptr;
};

// Whether a step computes bf16 without a block of floats in between: those of two operands and a few
// instructions.
bool ReadsBf16(FusedCode code);

using FusedStepKernel = void (*)(FusedCode code, const FusedElements* operands, FusedResult out,
                                 std::int64_t count);

// For the best instruction set that this CPU and the build support.
FusedStepKernel ChooseFusedStepKernel();
// The same, chosen once per process.
FusedStepKernel BestFusedStepKernel();

// Blocks of other elements to floats and back.
struct FusedConversions {
  void (*widen)(const std::uint16_t* from, std::int64_t count, float* to);  // bf16
  void (*round)(const float* from, std::int64_t count, std::uint16_t* to);  // to bf16, ties to even
  void (*truths)(const std::uint8_t* from, std::int64_t count, float* to);  // 0 for 0, otherwise 1
};

// For the best instruction set that this CPU and the build support.
FusedConversions ChooseFusedConversions();
// The same, chosen once per process.
const FusedConversions& BestFusedConversions();

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// A program of elementwise operations on floats, which rewire.fused runs block by block:
//
//   "mul x0 x0; add r0 0.5; tanh r1"
//
// A step is the name of an operation and its operands: an input of the kernel (x0), the result of an earlier
// step (r0), or a number. The last step's result is the program's. Most operations are named as the stock
// kernel that does the same. Truth values are floats here: 0 is false, everything else is true, and
// comparisons give 1. Bytes become floats where they are read, and the result becomes bytes where out has
// them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/fused_operations.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

enum class FusedCode : std::uint8_t {
#define REWIRE_FUSED_CODE(name, ...) k##name,
  REWIRE_FUSED_OPERATIONS(REWIRE_FUSED_CODE, REWIRE_FUSED_CODE)
#undef REWIRE_FUSED_CODE
  // Two steps in one pass, of which the first one's result is the second one's first operand. No steps of a
  // program's text. The product of the last one is with a number, and so is its sum.
  kAddAdd,
  kMinMin,
  kMaxMax,
  kMulAdd,
};

struct FusedOperand {
  enum Kind : std::uint8_t { kInput, kRegister, kNumber };
  Kind kind = kNumber;
  std::int16_t index = 0;  // of the input or the register
  float number = 0;
};

struct FusedStep {
  FusedCode code = FusedCode::kAdd;
  std::uint8_t operand_count = 0;
  std::int16_t to = 0;  // the register that gets the result. The last step's is the output itself.
  bool joins = false;   // whether the next step alone reads the result, as its first operand
  std::array<FusedOperand, 3> operands;
};

// The meaning of an input's bytes: (byte - zero) * scale.
struct FusedBytes {
  float scale = 1;
  std::int32_t zero = 0;
  bool given = false;  // by a step `dequantize` that alone reads the input, and is no step anymore
};

class FusedProgram {
 public:
  static constexpr int kMostInputs = 8;
  static constexpr int kMostSteps = 48;
  static constexpr int kMostRegisters = 8;

  // Reads and checks a program. An error names the attribute `program`.
  static Status Make(std::string_view text, FusedProgram* program);

  const std::vector<FusedStep>& steps() const { return steps_; }
  int inputs() const { return inputs_; }
  const FusedBytes& bytes_of(int input) const { return bytes_[static_cast<std::size_t>(input)]; }

 private:
  Status AddStep(std::string_view text);
  Status ReadOperand(std::string_view text, FusedOperand* operand) const;
  // Makes what dequantizes an input a part of how it is read.
  void TakeBytes();
  // Replaces results by registers. A register is free again behind the last step that reads it.
  Status PlaceResults();

  std::vector<FusedStep> steps_;
  std::array<FusedBytes, kMostInputs> bytes_;
  int inputs_ = 0;
};

}  // namespace rewire::kernel::cpu

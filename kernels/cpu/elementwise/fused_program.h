// SPDX-License-Identifier: Apache-2.0
//
// A program of elementwise operations on floats, which rewire.fused runs block by block:
//
//   "mul x0 x0; add r0 0.5; tanh r1"
//
// A step is the name of an operation and its operands: an input of the kernel (x0), the result of an earlier
// step (r0), or a number. The last step's result is the program's. Most operations are named as the stock
// kernel that does the same. Truth values are floats here: 0 is false, everything else is true, and
// comparisons give 1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// One row for each operation: its name, its operands, and how many of the last ones must be numbers.
#define REWIRE_FUSED_OPERATIONS(OPERATION)  \
  OPERATION(Add, "add", 2, 0)               \
  OPERATION(Sub, "sub", 2, 0)               \
  OPERATION(Mul, "mul", 2, 0)               \
  OPERATION(Div, "div", 2, 0)               \
  OPERATION(Min, "min", 2, 0)               \
  OPERATION(Max, "max", 2, 0)               \
  OPERATION(AtLeast, "at_least", 2, 0)      \
  OPERATION(AtMost, "at_most", 2, 0)        \
  OPERATION(PRelu, "prelu", 2, 0)           \
  OPERATION(Equal, "equal", 2, 0)           \
  OPERATION(NotEqual, "not_equal", 2, 0)    \
  OPERATION(Less, "less", 2, 0)             \
  OPERATION(LessEqual, "less_equal", 2, 0)  \
  OPERATION(And, "and", 2, 0)               \
  OPERATION(Or, "or", 2, 0)                 \
  OPERATION(Not, "not", 1, 0)               \
  OPERATION(Where, "where", 3, 0)           \
  OPERATION(Neg, "neg", 1, 0)               \
  OPERATION(Abs, "abs", 1, 0)               \
  OPERATION(Sign, "sign", 1, 0)             \
  OPERATION(Relu, "relu", 1, 0)             \
  OPERATION(Reciprocal, "reciprocal", 1, 0) \
  OPERATION(Round, "round", 1, 0)           \
  OPERATION(Floor, "floor", 1, 0)           \
  OPERATION(Ceil, "ceil", 1, 0)             \
  OPERATION(Sqrt, "sqrt", 1, 0)             \
  OPERATION(Exp, "exp", 1, 0)               \
  OPERATION(Log, "log", 1, 0)               \
  OPERATION(Sin, "sin", 1, 0)               \
  OPERATION(Cos, "cos", 1, 0)               \
  OPERATION(Tanh, "tanh", 1, 0)             \
  OPERATION(Erf, "erf", 1, 0)               \
  OPERATION(Sigmoid, "sigmoid", 1, 0)       \
  OPERATION(Softplus, "softplus", 1, 0)     \
  OPERATION(Softsign, "softsign", 1, 0)     \
  OPERATION(HardSwish, "hard_swish", 1, 0)  \
  OPERATION(Swish, "swish", 1, 0)           \
  OPERATION(Mish, "mish", 1, 0)             \
  OPERATION(Gelu, "gelu", 1, 0)             \
  OPERATION(GeluTanh, "gelu_tanh", 1, 0)    \
  OPERATION(Elu, "elu", 2, 1)               \
  OPERATION(Clip, "clip", 3, 2)             \
  OPERATION(HardSigmoid, "hard_sigmoid", 3, 2)

enum class FusedCode : std::uint8_t {
#define REWIRE_FUSED_CODE(name, text, operands, numbers) k##name,
  REWIRE_FUSED_OPERATIONS(REWIRE_FUSED_CODE)
#undef REWIRE_FUSED_CODE
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
  std::array<FusedOperand, 3> operands;
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

 private:
  Status AddStep(std::string_view text);
  Status ReadOperand(std::string_view text, FusedOperand* operand) const;
  // Replaces results by registers. A register is free again behind the last step that reads it.
  Status PlaceResults();

  std::vector<FusedStep> steps_;
  int inputs_ = 0;
};

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// The operations of rewire.fused, and the kernels that it can do the work of. A fused program names
// operations by their texts (kernels/cpu/elementwise/fused_program.h).
#pragma once

#include <cstdint>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"

namespace rewire::names {

// Traits of operations: Truths compares, or takes truth values. Slow gains nothing where it is the only step.
inline constexpr std::uint8_t kFusedTruths = 1;
inline constexpr std::uint8_t kFusedSlow = 2;

// One row for each operation:
//   OPERATION(name, text, operands, numbers, traits, NumberAttribute...)
//   OTHER(name, text, operands, numbers)
// The last `numbers` operands must be numbers. The kernel k<name> does the same as the operation, and its
// attributes are those numbers. OTHER has no kernel of its own, or one whose numbers are inputs: dequantize
// is (x - zero) * scale, and quantize is x / scale rounded, plus zero. Their numbers are the scale and the
// zero.
#define REWIRE_FUSED_OPERATIONS(OPERATION, OTHER)                                                          \
  OPERATION(Add, "add", 2, 0, 0)                                                                           \
  OPERATION(Sub, "sub", 2, 0, 0)                                                                           \
  OPERATION(Mul, "mul", 2, 0, 0)                                                                           \
  OPERATION(Div, "div", 2, 0, 0)                                                                           \
  OPERATION(Min, "min", 2, 0, 0)                                                                           \
  OPERATION(Max, "max", 2, 0, 0)                                                                           \
  OPERATION(AtLeast, "at_least", 2, 0, 0)                                                                  \
  OPERATION(AtMost, "at_most", 2, 0, 0)                                                                    \
  OPERATION(PRelu, "prelu", 2, 0, 0)                                                                       \
  OPERATION(Equal, "equal", 2, 0, kFusedTruths)                                                            \
  OPERATION(NotEqual, "not_equal", 2, 0, kFusedTruths)                                                     \
  OPERATION(Less, "less", 2, 0, kFusedTruths)                                                              \
  OPERATION(LessEqual, "less_equal", 2, 0, kFusedTruths)                                                   \
  OPERATION(And, "and", 2, 0, kFusedTruths)                                                                \
  OPERATION(Or, "or", 2, 0, kFusedTruths)                                                                  \
  OPERATION(Not, "not", 1, 0, kFusedTruths)                                                                \
  OPERATION(Where, "where", 3, 0, kFusedTruths)                                                            \
  OPERATION(Neg, "neg", 1, 0, 0)                                                                           \
  OPERATION(Abs, "abs", 1, 0, 0)                                                                           \
  OPERATION(Sign, "sign", 1, 0, 0)                                                                         \
  OPERATION(Relu, "relu", 1, 0, 0)                                                                         \
  OPERATION(Reciprocal, "reciprocal", 1, 0, 0)                                                             \
  OPERATION(Round, "round", 1, 0, kFusedSlow)                                                              \
  OPERATION(Floor, "floor", 1, 0, kFusedSlow)                                                              \
  OPERATION(Ceil, "ceil", 1, 0, kFusedSlow)                                                                \
  OPERATION(Sqrt, "sqrt", 1, 0, 0)                                                                         \
  OPERATION(Exp, "exp", 1, 0, 0)                                                                           \
  OPERATION(Log, "log", 1, 0, 0)                                                                           \
  OPERATION(Sin, "sin", 1, 0, kFusedSlow)                                                                  \
  OPERATION(Cos, "cos", 1, 0, kFusedSlow)                                                                  \
  OPERATION(Tanh, "tanh", 1, 0, 0)                                                                         \
  OPERATION(Erf, "erf", 1, 0, 0)                                                                           \
  OPERATION(Sigmoid, "sigmoid", 1, 0, 0)                                                                   \
  OPERATION(Softplus, "softplus", 1, 0, kFusedSlow)                                                        \
  OPERATION(Softsign, "softsign", 1, 0, 0)                                                                 \
  OPERATION(HardSwish, "hard_swish", 1, 0, 0)                                                              \
  OPERATION(Swish, "swish", 1, 0, 0)                                                                       \
  OPERATION(Mish, "mish", 1, 0, kFusedSlow)                                                                \
  OPERATION(Gelu, "gelu", 1, 0, 0)                                                                         \
  OTHER(GeluTanh, "gelu_tanh", 1, 0)                                                                       \
  OPERATION(Elu, "elu", 2, 1, kFusedSlow, contract::kEluAlpha)                                             \
  OPERATION(Clip, "clip", 3, 2, 0, contract::kClipMin, contract::kClipMax)                                 \
  OPERATION(HardSigmoid, "hard_sigmoid", 3, 2, 0, contract::kHardSigmoidAlpha, contract::kHardSigmoidBeta) \
  OTHER(Dequantize, "dequantize", 3, 2)                                                                    \
  OTHER(Quantize, "quantize", 3, 2)

// The operation that does the work of a kernel, whose attributes are its last operands.
struct FusedForm {
  const char* kernel;
  const char* operation;
  std::uint8_t traits = 0;
  contract::NumberAttribute numbers[2] = {};

  constexpr bool truths() const { return (traits & kFusedTruths) != 0; }
  constexpr bool slow_alone() const { return (traits & kFusedSlow) != 0; }
};

inline constexpr FusedForm kFusedForms[] = {
#define REWIRE_FUSED_FORM(name, text, operands, numbers, traits, ...) {k##name, text, traits, {__VA_ARGS__}},
#define REWIRE_FUSED_OTHER(...)
    REWIRE_FUSED_OPERATIONS(REWIRE_FUSED_FORM, REWIRE_FUSED_OTHER)
#undef REWIRE_FUSED_FORM
#undef REWIRE_FUSED_OTHER
        {kLeakyRelu, "prelu", 0, {contract::kLeakyReluAlpha}},
    // With its operands exchanged.
    {kGreater, "less", kFusedTruths},
    {kGreaterEqual, "less_equal", kFusedTruths},
    // Between floats and truth values: compared with 0.
    {kCast, "not_equal", kFusedTruths},
};

}  // namespace rewire::names

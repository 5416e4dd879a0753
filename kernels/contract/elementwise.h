// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels that compute each element by itself.
#pragma once

#include "rewire/kernels/contract/cost.h"

namespace rewire::names {

// Arithmetic.
inline constexpr char kAdd[] = "rewire.add";
inline constexpr char kSub[] = "rewire.sub";
inline constexpr char kMul[] = "rewire.mul";
inline constexpr char kDiv[] = "rewire.div";
inline constexpr char kMod[] = "rewire.mod";
inline constexpr char kFmod[] = "rewire.fmod";
inline constexpr char kPow[] = "rewire.pow";
inline constexpr char kPRelu[] = "rewire.prelu";
inline constexpr char kMin[] = "rewire.min";
inline constexpr char kMax[] = "rewire.max";
inline constexpr char kAtLeast[] = "rewire.at_least";
inline constexpr char kAtMost[] = "rewire.at_most";

// Comparison and logic.
inline constexpr char kEqual[] = "rewire.equal";
inline constexpr char kNotEqual[] = "rewire.not_equal";
inline constexpr char kLess[] = "rewire.less";
inline constexpr char kLessEqual[] = "rewire.less_equal";
inline constexpr char kGreater[] = "rewire.greater";
inline constexpr char kGreaterEqual[] = "rewire.greater_equal";
inline constexpr char kAnd[] = "rewire.and";
inline constexpr char kOr[] = "rewire.or";
inline constexpr char kXor[] = "rewire.xor";

// Functions of one element.
inline constexpr char kNeg[] = "rewire.neg";
inline constexpr char kAbs[] = "rewire.abs";
inline constexpr char kSign[] = "rewire.sign";
inline constexpr char kRelu[] = "rewire.relu";
inline constexpr char kSigmoid[] = "rewire.sigmoid";
inline constexpr char kSoftplus[] = "rewire.softplus";
inline constexpr char kSoftsign[] = "rewire.softsign";
inline constexpr char kReciprocal[] = "rewire.reciprocal";
inline constexpr char kRound[] = "rewire.round";
inline constexpr char kFloor[] = "rewire.floor";
inline constexpr char kCeil[] = "rewire.ceil";
inline constexpr char kSqrt[] = "rewire.sqrt";
inline constexpr char kExp[] = "rewire.exp";
inline constexpr char kLog[] = "rewire.log";
inline constexpr char kSin[] = "rewire.sin";
inline constexpr char kCos[] = "rewire.cos";
inline constexpr char kTan[] = "rewire.tan";
inline constexpr char kAsin[] = "rewire.asin";
inline constexpr char kAcos[] = "rewire.acos";
inline constexpr char kAtan[] = "rewire.atan";
inline constexpr char kSinh[] = "rewire.sinh";
inline constexpr char kCosh[] = "rewire.cosh";
inline constexpr char kTanh[] = "rewire.tanh";
inline constexpr char kAsinh[] = "rewire.asinh";
inline constexpr char kAcosh[] = "rewire.acosh";
inline constexpr char kAtanh[] = "rewire.atanh";
inline constexpr char kErf[] = "rewire.erf";
inline constexpr char kBitNot[] = "rewire.bit_not";
inline constexpr char kNot[] = "rewire.not";

// Kinds of floats.
inline constexpr char kIsNan[] = "rewire.isnan";
inline constexpr char kIsInf[] = "rewire.isinf";

// Bits.
inline constexpr char kBitAnd[] = "rewire.bit_and";
inline constexpr char kBitOr[] = "rewire.bit_or";
inline constexpr char kBitXor[] = "rewire.bit_xor";
inline constexpr char kBitShift[] = "rewire.bit_shift";

// Activations.
inline constexpr char kLeakyRelu[] = "rewire.leaky_relu";
inline constexpr char kElu[] = "rewire.elu";
inline constexpr char kSelu[] = "rewire.selu";
inline constexpr char kGelu[] = "rewire.gelu";
inline constexpr char kCelu[] = "rewire.celu";
inline constexpr char kThresholdedRelu[] = "rewire.thresholded_relu";
inline constexpr char kShrink[] = "rewire.shrink";
inline constexpr char kMish[] = "rewire.mish";
inline constexpr char kHardSigmoid[] = "rewire.hard_sigmoid";
inline constexpr char kSwish[] = "rewire.swish";
inline constexpr char kHardSwish[] = "rewire.hard_swish";
inline constexpr char kClip[] = "rewire.clip";

// Several elementwise operations.
inline constexpr char kFused[] = "rewire.fused";

// Selection.
inline constexpr char kWhere[] = "rewire.where";

// Conversion.
inline constexpr char kCast[] = "rewire.cast";

// Conversion of narrow types and of bits.
inline constexpr char kCastNarrow[] = "rewire.cast_narrow";
inline constexpr char kBitCast[] = "rewire.bit_cast";

inline constexpr Cost kElementwiseCosts[] = {
    {kAcos, 8}, {kAcosh, 8}, {kAsin, 8}, {kAsinh, 8},   {kAtan, 8},       {kAtanh, 8}, {kCelu, 5},
    {kCos, 8},  {kCosh, 8},  {kElu, 5},  {kErf, 8},     {kExp, 5},        {kGelu, 8},  {kLog, 5},
    {kMish, 8}, {kPow, 20},  {kSelu, 5}, {kSigmoid, 5}, {kSin, 8},        {kSinh, 8},  {kSoftplus, 8},
    {kSqrt, 3}, {kSwish, 5}, {kTan, 8},  {kTanh, 6},    {kCastNarrow, 4},
};

}  // namespace rewire::names

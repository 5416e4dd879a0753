// SPDX-License-Identifier: Apache-2.0
//
// The attributes of elementwise kernels, as kernels of every kind, passes and the writer of C source read
// them. `Given` reads attributes by Float, Choice and Bool, as kernel::Attributes does.
#pragma once

#include <limits>

#include "rewire/kernels/contract/elementwise.h"

namespace rewire::contract {

// An attribute that is a number, with its default.
struct NumberAttribute {
  const char* name = nullptr;
  double otherwise = 0;

  template <typename Given>
  double Read(Given& given) const {
    return given.Float(name, otherwise);
  }
};

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
inline constexpr NumberAttribute kLeakyReluAlpha = {"alpha", 0.01};
inline constexpr NumberAttribute kEluAlpha = {"alpha", 1};
inline constexpr NumberAttribute kCeluAlpha = {"alpha", 1};
inline constexpr NumberAttribute kThresholdedReluAlpha = {"alpha", 1};
inline constexpr NumberAttribute kSeluAlpha = {"alpha", 1.67326319217681884765625};
inline constexpr NumberAttribute kSeluGamma = {"gamma", 1.05070102214813232421875};
inline constexpr NumberAttribute kHardSigmoidAlpha = {"alpha", 0.2};
inline constexpr NumberAttribute kHardSigmoidBeta = {"beta", 0.5};
inline constexpr NumberAttribute kShrinkLambda = {"lambd", 0.5};
inline constexpr NumberAttribute kShrinkBias = {"bias", 0};
inline constexpr NumberAttribute kClipMin = {"min", -kUnlimited};
inline constexpr NumberAttribute kClipMax = {"max", kUnlimited};

// The kernels whose attributes are numbers alone, in the order of their functions' parameters.
struct NumberedKernel {
  const char* kernel;
  NumberAttribute numbers[2] = {};
};
inline constexpr NumberedKernel kNumberedKernels[] = {
    {names::kLeakyRelu, {kLeakyReluAlpha}},
    {names::kElu, {kEluAlpha}},
    {names::kCelu, {kCeluAlpha}},
    {names::kThresholdedRelu, {kThresholdedReluAlpha}},
    {names::kClip, {kClipMin, kClipMax}},
    {names::kHardSigmoid, {kHardSigmoidAlpha, kHardSigmoidBeta}},
    {names::kShrink, {kShrinkLambda, kShrinkBias}},
};

struct GeluAttributes {
  bool tanh = false;  // approximated by tanh

  template <typename Given>
  void Read(Given& given) {
    tanh = given.Choice("approximate", {"none", "tanh"}, 0) == 1;
  }
};

// The infinities that count.
struct IsInfAttributes {
  bool positive = true;
  bool negative = true;

  template <typename Given>
  void Read(Given& given) {
    positive = given.Bool("detect_positive", true);
    negative = given.Bool("detect_negative", true);
  }
};

}  // namespace rewire::contract

// SPDX-License-Identifier: Apache-2.0
//
// The functions of gates on rows of units, in vectors.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/recurrent/rnn_attributes.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Calls body(i) for i < count, of a body that the compiler can make vectors of.
template <typename Body>
void ForUnits(std::int64_t count, const Body& body) {
  WideLoop([=] {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  });
}

// The function's kind is known to the compiler, so that the loop has no branches.
template <GateFunction::Kind kKind, typename T>
void RunGateOf(const GateFunction& function, T* values, std::int64_t count) {
  WideLoop([=] {
    GateFunction known = function;
    known.kind = kKind;
    for (std::int64_t i = 0; i < count; ++i) values[i] = known(values[i]);
  });
}

// values[i] = function(values[i]).
template <typename T>
void RunGate(const GateFunction& function, T* values, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    const VectorMath& math = BestVectorMath();
    const auto alpha = static_cast<float>(function.alpha), beta = static_cast<float>(function.beta);
    switch (function.kind) {
      case GateFunction::kSigmoid:
        return math.sigmoid(values, values, count);
      case GateFunction::kTanh:
        return math.tanh(values, values, count);
      case GateFunction::kScaledTanh:
        math.scaled(values, beta, values, count);
        math.tanh(values, values, count);
        return math.scaled(values, alpha, values, count);
      case GateFunction::kElu:
        return math.elu(values, alpha, values, count);
      case GateFunction::kSoftplus:
        return math.softplus(values, values, count);
      case GateFunction::kRelu:
        return RunGateOf<GateFunction::kRelu>(function, values, count);
      case GateFunction::kAffine:
        return RunGateOf<GateFunction::kAffine>(function, values, count);
      case GateFunction::kLeakyRelu:
        return RunGateOf<GateFunction::kLeakyRelu>(function, values, count);
      case GateFunction::kThresholdedRelu:
        return RunGateOf<GateFunction::kThresholdedRelu>(function, values, count);
      case GateFunction::kHardSigmoid:
        return RunGateOf<GateFunction::kHardSigmoid>(function, values, count);
      case GateFunction::kSoftsign:
        return RunGateOf<GateFunction::kSoftsign>(function, values, count);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
  }
}

// The same of values that the layer's clip limits first.
template <typename T>
void RunClippedGate(const RnnAttributes& attributes, const GateFunction& function, T* values,
                    std::int64_t count) {
  if (attributes.clip != 0) {
    const auto limit = static_cast<T>(attributes.clip);
    ForUnits(count, [=](std::int64_t i) { values[i] = functions::Clip(values[i], -limit, limit); });
  }
  RunGate(function, values, count);
}

}  // namespace rewire::kernel::cpu

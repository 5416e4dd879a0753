// SPDX-License-Identifier: Apache-2.0
// Floats to the power of integers, as an operation of Elementwise. The results are those of f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/pair_rows.h"
#include "rewire/kernels/cpu/math/pair_math.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

template <typename Exponent>
struct OnWholeExponents {
  float operator()(float base, Exponent exponent) const {
    return ToType<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
};

template <typename Exponent>
bool IsAtMost(Exponent exponent, std::int32_t most) {
  if constexpr (std::is_signed_v<Exponent>) {
    if (exponent < -most) return false;
  }
  return exponent <= static_cast<Exponent>(most);
}

// One exponent for up to kHalfBlock floats. So few products in f64 leave more than 40 bits right.
inline constexpr std::int32_t kMostProducts = 1024;
inline void RaiseBySquaring(const float* base, std::int32_t exponent, std::int64_t count, float* out) {
  WideLoop([=] {
    double power[kHalfBlock], square[kHalfBlock];
    for (std::int64_t i = 0; i < count; ++i) power[i] = 1;
    for (std::int64_t i = 0; i < count; ++i) square[i] = static_cast<double>(base[i]);
    for (std::int32_t rest = std::abs(exponent); rest != 0; rest /= 2) {
      if (rest % 2 != 0) {
        for (std::int64_t i = 0; i < count; ++i) power[i] *= square[i];
      }
      for (std::int64_t i = 0; i < count; ++i) square[i] *= square[i];
    }
    if (exponent < 0) {
      for (std::int64_t i = 0; i < count; ++i) power[i] = 1 / power[i];
    }
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(power[i]);
  });
}

// Writes `count` exponents as floats. Returns false if floats do not hold one of them.
template <typename Exponent>
bool LoadExponents(const Exponent* from, std::int64_t step, std::int64_t count, float* to) {
  constexpr std::int32_t kMostHeld = 1 << 24;
  bool held = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const Exponent exponent = from[i * step];
    held = held && IsAtMost(exponent, kMostHeld);
    to[i] = static_cast<float>(exponent);
  }
  return held;
}

template <typename Exponent>
void RunRow(const OnWholeExponents<Exponent> op, std::int64_t count, RowOf<float> out, RowOf<const float> a,
            RowOf<const Exponent> b) {
  float blocks[3][kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    const float* base = FloatsOf(a, at, size, blocks[0]);
    const Exponent* exponents = b.data + at * b.step;
    float* to = out.step == 1 ? out.data + at : blocks[2];
    if (b.step == 0 && IsAtMost(*exponents, kMostProducts)) {
      RaiseBySquaring(base, static_cast<std::int32_t>(*exponents), size, to);
    } else if (LoadExponents(exponents, b.step, size, blocks[1])) {
      BestPairMath().pow(base, blocks[1], to, size);
    } else {
      for (std::int64_t i = 0; i < size; ++i) to[i] = op(base[i], exponents[i * b.step]);
    }
    if (out.step != 1) StoreFloats(to, at, size, out);
  }
}

template <typename Exponent>
void RunContiguous(const OnWholeExponents<Exponent> op, std::int64_t count, float* out, const float* a,
                   const Exponent* b) {
  RunRow(op, count, RowOf<float>{out, 1}, RowOf<const float>{a, 1}, RowOf<const Exponent>{b, 1});
}

}  // namespace rewire::kernel::cpu

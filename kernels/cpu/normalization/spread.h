// SPDX-License-Identifier: Apache-2.0
// Kernels of normalization share checks, and means with deviations.
#pragma once

#include <cmath>
#include <cstdint>

#include "rewire/kernels/cpu/normalization/row_functions.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

inline Status CheckShaped(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
  if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
  return checks.Take();
}

inline Status CheckParameter(const char* name, TensorView parameter, ShapeView shape, TensorView x,
                             TensorView out) {
  Checks checks;
  checks.Dense(name, parameter).SameDType(name, parameter, "x", x).Shape(name, parameter, shape);
  return checks.NoOverlap("out", out, name, parameter).Take();
}

// A mean and the inverse of a standard deviation.
template <typename T>
struct Spread {
  T center;
  T factor;
};

template <typename T>
Moments MomentsOf(const RowFunctions<T>& rows, const T* in, std::int64_t count, double shift, Pace& pace) {
  Moments moments;
  const bool done = pace.For(count, 1, [&](std::int64_t begin, std::int64_t end) {
    moments.Add(rows.moments(in + begin, end - begin, shift));
  });
  return done ? moments : Moments();
}

// The spread of `count` numbers with these moments about `shift`, one of the numbers.
template <typename T>
Spread<T> SpreadOf(const Moments& moments, std::int64_t count, double shift, double epsilon) {
  const double mean = moments.sum / static_cast<double>(count);
  // Rounding may make it negative. NaN stays.
  const double variance = moments.squares / static_cast<double>(count) - mean * mean;
  const double positive = variance < 0 ? 0 : variance;
  return {static_cast<T>(shift + mean), static_cast<T>(1 / std::sqrt(positive + epsilon))};
}

template <typename T>
Spread<T> SpreadOf(const RowFunctions<T>& rows, const T* in, std::int64_t count, double epsilon, Pace& pace) {
  const auto shift = static_cast<double>(in[0]);
  return SpreadOf<T>(MomentsOf(rows, in, count, shift, pace), count, shift, epsilon);
}

}  // namespace rewire::kernel::cpu

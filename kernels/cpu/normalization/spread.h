// SPDX-License-Identifier: Apache-2.0
// Kernels of normalization share checks, and means with deviations.
#pragma once

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

template <typename T>
Moments MomentsOf(const RowFunctions<T>& rows, const T* in, std::int64_t count, double shift, Pace& pace) {
  Moments moments;
  const bool done = pace.For(count, 1, [&](std::int64_t begin, std::int64_t end) {
    moments.Add(rows.moments(in + begin, end - begin, shift));
  });
  return done ? moments : Moments();
}

template <typename T>
Spread<T> SpreadOf(const RowFunctions<T>& rows, const T* in, std::int64_t count, double epsilon, Pace& pace) {
  const auto shift = static_cast<double>(in[0]);
  return SpreadOf<T>(MomentsOf(rows, in, count, shift, pace), count, shift, epsilon);
}

}  // namespace rewire::kernel::cpu

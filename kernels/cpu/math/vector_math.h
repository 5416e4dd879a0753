// SPDX-License-Identifier: Apache-2.0
// Functions of many floats at once, with the vectors of the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Each takes any float, including NaN and infinities, as the standard library's function does. Results are
// within a few units in the last place. `in` may be `out`.
struct VectorMath {
  using Row = void (*)(const float* in, float* out, std::int64_t count);
  Row exp;
  Row log;
  Row tanh;
  Row erf;
  Row sin;
  Row cos;
  Row tan;
  Row asin;
  Row acos;
  Row atan;
  Row sinh;
  Row cosh;
  Row asinh;
  Row acosh;
  Row atanh;
  // To whole numbers; halves go to the even neighbor. Exact.
  Row round;
  Row floor;
  Row ceil;
  // As kernels/contract/scalar_functions.h defines them.
  Row sigmoid;
  Row swish;
  Row softplus;
  Row mish;
  Row gelu;
  Row gelu_tanh;
  void (*elu)(const float* in, float alpha, float* out, std::int64_t count);
  // out = exp(in - shift), where in - shift is at most 88 or NaN. Returns the sum of out.
  float (*shifted_exp)(const float* in, float shift, float* out, std::int64_t count);
  // Returns the sum of exp(in - largest). `largest` must be the largest element; the result is NaN if it is
  // NaN or infinite.
  float (*sum_of_exp)(const float* in, float largest, std::int64_t count);
  // Returns the largest element; NaN if one is NaN; -inf if there are none.
  float (*largest)(const float* in, std::int64_t count);
  // out = in * factor; out = in - first - second.
  void (*scaled)(const float* in, float factor, float* out, std::int64_t count);
  void (*lowered)(const float* in, float first, float second, float* out, std::int64_t count);
  // Adds each element to its sum, of floats and of bf16.
  void (*add)(const float* in, float* sums, std::int64_t count);
  void (*add_bf16)(const std::uint16_t* in, float* sums, std::int64_t count);
  // Puts each element in the place of its result if it is larger or smaller. NaN counts as both.
  void (*larger)(const float* in, float* results, std::int64_t count);
  void (*smaller)(const float* in, float* results, std::int64_t count);
  // out[r] = sum of row[i] * by[i] for i < depth, for each of `count` rows, which are `step` apart.
  void (*dots)(const float* rows, std::int64_t step, std::int64_t count, const float* by, std::int64_t depth,
               float* out);
};

// The functions for the best instruction set that this CPU and the build support.
VectorMath ChooseVectorMath();

// The same, chosen once per process.
const VectorMath& BestVectorMath();

}  // namespace rewire::kernel::cpu

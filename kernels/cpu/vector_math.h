// SPDX-License-Identifier: Apache-2.0
// Functions of many floats at once, with the vectors of the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Each takes any float as the function of the standard library does, NaN and infinities too, within a few
// units in the last place. `in` may be `out`.
struct VectorMath {
  using Row = void (*)(const float* in, float* out, std::int64_t count);
  Row exp;
  Row log;
  Row tanh;
  Row sigmoid;  // 1 / (1 + exp(-x))
  Row erf;
  Row gelu;  // x / 2 * (1 + erf(x / sqrt(2)))
  // out = exp(in - shift), where that is at most 88 or NaN; gives the sum of out.
  float (*shifted_exp)(const float* in, float shift, float* out, std::int64_t count);
  // The sum of exp(in - largest), where that is the largest of them; NaN if it is NaN or infinite.
  float (*sum_of_exp)(const float* in, float largest, std::int64_t count);
  // The largest of them, NaN if one is; -inf of none.
  float (*largest)(const float* in, std::int64_t count);
  // out = in * factor; out = in - first - second.
  void (*scaled)(const float* in, float factor, float* out, std::int64_t count);
  void (*lowered)(const float* in, float first, float second, float* out, std::int64_t count);
};

// That of the best instruction set which this CPU and the build have.
VectorMath ChooseVectorMath();

// The same, chosen once per process.
const VectorMath& BestVectorMath();

}  // namespace rewire::kernel::cpu

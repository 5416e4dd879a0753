// SPDX-License-Identifier: Apache-2.0
//
// Conversions between arrays of floats and 8-bit integers, with the CPU's vector instructions: real = (stored
// - zero) * scale.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// How 8-bit integers represent floats, and the range to which results are limited.
struct Quantization {
  float scale = 1;
  std::int32_t zero = 0;
  std::int32_t least = 0, most = 0;
};

template <typename Q>
struct QuantizedMath {
  // to[i] = from[i] / scale, rounded to the nearest and even integer, plus zero, held between least and most;
  // NaN gives least.
  void (*quantize)(const float* from, std::int64_t count, const Quantization& by, Q* to);
  void (*dequantize)(const Q* from, std::int64_t count, const Quantization& by, float* to);
  // The same, where each element has a scale and a zero of its own. `zeros` may be null: each is 0 then.
  void (*quantize_each)(const float* from, std::int64_t count, const float* scales, const Q* zeros, Q* to);
  void (*dequantize_each)(const Q* from, std::int64_t count, const float* scales, const Q* zeros, float* to);
  // to[i] = from[i] * (x_scale * w_scales[i * step] / by.scale), rounded and held as by quantize; step is 0
  // or 1.
  void (*requantize)(const std::int32_t* from, std::int64_t count, float x_scale, const float* w_scales,
                     std::int64_t step, const Quantization& by, Q* to);
  // Do the same as dequantizing both, adding or multiplying and quantizing, each step in f32. A b_step of 0
  // repeats b's first element, otherwise it is 1.
  void (*add)(const Q* a, const Quantization& of_a, const Q* b, std::int64_t b_step, const Quantization& of_b,
              std::int64_t count, const Quantization& by, Q* to);
  void (*mul)(const Q* a, const Quantization& of_a, const Q* b, std::int64_t b_step, const Quantization& of_b,
              std::int64_t count, const Quantization& by, Q* to);
  // Does the same as dequantizing, multiplying negative numbers by a slope, and quantizing. Element i has
  // slopes[i % period]. The slopes go on from the first one behind the last one, kMoreSlopes of them.
  void (*prelu)(const Q* from, const Quantization& of_from, const float* slopes, std::int64_t period,
                std::int64_t count, const Quantization& by, Q* to);
  std::int64_t (*sum)(const Q* from, std::int64_t count);
};

inline constexpr std::int64_t kMoreSlopes = 16;

// The functions of the best instruction set that this CPU and the build support. For std::uint8_t and
// std::int8_t.
template <typename Q>
QuantizedMath<Q> ChooseQuantizedMath();

// The same, chosen once per process.
template <typename Q>
const QuantizedMath<Q>& BestQuantizedMath() {
  static const QuantizedMath<Q> kBest = ChooseQuantizedMath<Q>();
  return kBest;
}

// Widens [*least, *most] so that it includes all elements except NaN.
using WidenRange = void (*)(const float* from, std::int64_t count, float* least, float* most);
WidenRange ChooseWidenRange();
inline WidenRange BestWidenRange() {
  static const WidenRange kBest = ChooseWidenRange();
  return kBest;
}

}  // namespace rewire::kernel::cpu

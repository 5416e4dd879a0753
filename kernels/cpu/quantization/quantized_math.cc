// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/quantization/quantized_math.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/quantization/quantized_math.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/rounded-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using DI = hn::Rebind<std::int32_t, D>;
using V = hn::Vec<D>;

inline std::int64_t Lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

// Calls run(i) for every vector of `count` elements, the last one over the ones before where the count is no
// multiple; false for fewer than a vector. Elements are computed twice then, so the output lies apart.
template <typename Run>
HWY_INLINE bool ForVectors(std::int64_t count, const Run& run) {
  if (count < Lanes()) return false;
  std::int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) run(i);
  if (i < count) run(count - Lanes());
  return true;
}

template <typename Q>
HWY_INLINE V Dequantized(const Q* from, const Quantization& by) {
  const auto wide = hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<Q, D>(), from));
  return hn::Mul(hn::ConvertTo(D(), hn::Sub(wide, hn::Set(DI(), by.zero))), hn::Set(D(), by.scale));
}

// What is scaled already.
template <typename Q>
HWY_INLINE void StoreRounded(V scaled, const Quantization& by, Q* to) {
  const auto rounded = Rounded(D(), scaled, static_cast<float>(by.zero), static_cast<float>(by.least),
                               static_cast<float>(by.most));
  const hn::Rebind<Q, D> d;
  hn::StoreU(hn::DemoteTo(d, rounded), d, to);
}

template <typename Q>
HWY_INLINE void StoreQuantized(V value, const Quantization& by, Q* to) {
  StoreRounded(hn::Div(value, hn::Set(D(), by.scale)), by, to);
}

// A vector of sums by vectors of scales.
template <typename Q>
HWY_INLINE void StoreRequantized(const std::int32_t* from, V x_scale, V w_scale, const Quantization& by,
                                 Q* to) {
  const V factor = hn::Div(hn::Mul(x_scale, w_scale), hn::Set(D(), by.scale));
  StoreRounded(hn::Mul(hn::ConvertTo(D(), hn::LoadU(DI(), from)), factor), by, to);
}

template <typename Q>
void Quantize(const float* from, std::int64_t count, const Quantization& by, Q* to) {
  const auto run = [&](std::int64_t i) HWY_ATTR { StoreQuantized(hn::LoadU(D(), from + i), by, to + i); };
  if (ForVectors(count, run)) return;
  HWY_ALIGN float values[hn::MaxLanes(D())] = {};
  Q results[hn::MaxLanes(D())];
  std::copy_n(from, count, values);
  StoreQuantized(hn::Load(D(), values), by, results);
  std::copy_n(results, count, to);
}

template <typename Q>
void Dequantize(const Q* from, std::int64_t count, const Quantization& by, float* to) {
  const auto run = [&](std::int64_t i) HWY_ATTR { hn::StoreU(Dequantized(from + i, by), D(), to + i); };
  if (ForVectors(count, run)) return;
  Q values[hn::MaxLanes(D())] = {};
  HWY_ALIGN float results[hn::MaxLanes(D())];
  std::copy_n(from, count, values);
  hn::Store(Dequantized(values, by), D(), results);
  std::copy_n(results, count, to);
}

template <typename Q>
void Requantize(const std::int32_t* from, std::int64_t count, float x_scale, const float* w_scales,
                std::int64_t step, const Quantization& by, Q* to) {
  const V of_x = hn::Set(D(), x_scale);
  const V of_all = hn::Set(D(), w_scales[0]);
  const auto run = [&](std::int64_t i) HWY_ATTR {
    StoreRequantized(from + i, of_x, step == 0 ? of_all : hn::LoadU(D(), w_scales + i), by, to + i);
  };
  if (ForVectors(count, run)) return;
  std::int32_t values[hn::MaxLanes(D())] = {};
  HWY_ALIGN float scales[hn::MaxLanes(D())] = {};
  Q results[hn::MaxLanes(D())];
  std::copy_n(from, count, values);
  for (std::int64_t i = 0; i < count; ++i) scales[i] = w_scales[i * step];
  StoreRequantized(values, of_x, hn::Load(D(), scales), by, results);
  std::copy_n(results, count, to);
}

template <typename Q>
void Add(const Q* a, const Quantization& of_a, const Q* b, const Quantization& of_b, std::int64_t count,
         const Quantization& by, Q* to) {
  const auto run = [&](std::int64_t i) HWY_ATTR {
    StoreQuantized(hn::Add(Dequantized(a + i, of_a), Dequantized(b + i, of_b)), by, to + i);
  };
  if (ForVectors(count, run)) return;
  Q left[hn::MaxLanes(D())] = {};
  Q right[hn::MaxLanes(D())] = {};
  Q results[hn::MaxLanes(D())];
  std::copy_n(a, count, left);
  std::copy_n(b, count, right);
  StoreQuantized(hn::Add(Dequantized(left, of_a), Dequantized(right, of_b)), by, results);
  std::copy_n(results, count, to);
}

void Widen(const float* from, std::int64_t count, float* least, float* most) {
  const D d;
  V low = hn::Set(d, *least), high = hn::Set(d, *most);
  std::int64_t i = 0;
  for (; i + Lanes() <= count; i += Lanes()) {
    const V x = hn::LoadU(d, from + i);
    low = hn::IfThenElse(hn::Lt(x, low), x, low);
    high = hn::IfThenElse(hn::Gt(x, high), x, high);
  }
  *least = hn::GetLane(hn::MinOfLanes(d, low));
  *most = hn::GetLane(hn::MaxOfLanes(d, high));
  for (; i < count; ++i) {
    *least = std::min(*least, from[i]);
    *most = std::max(*most, from[i]);
  }
}

QuantizedMath<std::uint8_t> OfUnsigned() { return {&Quantize, &Dequantize, &Requantize, &Add}; }
QuantizedMath<std::int8_t> OfSigned() { return {&Quantize, &Dequantize, &Requantize, &Add}; }
WidenRange OfRange() { return &Widen; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(OfUnsigned);
HWY_EXPORT(OfSigned);
HWY_EXPORT(OfRange);

template <>
QuantizedMath<std::uint8_t> ChooseQuantizedMath<std::uint8_t>() {
  return HWY_DYNAMIC_DISPATCH(OfUnsigned)();
}
template <>
QuantizedMath<std::int8_t> ChooseQuantizedMath<std::int8_t>() {
  return HWY_DYNAMIC_DISPATCH(OfSigned)();
}
WidenRange ChooseWidenRange() { return HWY_DYNAMIC_DISPATCH(OfRange)(); }

}  // namespace rewire::kernel::cpu
#endif

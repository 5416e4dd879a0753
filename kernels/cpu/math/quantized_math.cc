// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/quantized_math.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/math/quantized_math.cc"
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

// Rounds a number that is scaled already.
HWY_INLINE hn::Vec<DI> WholeOf(V scaled, const Quantization& by) {
  return Rounded(D(), scaled, static_cast<float>(by.zero), static_cast<float>(by.least),
                 static_cast<float>(by.most));
}
template <typename Q>
HWY_INLINE void StoreRounded(V scaled, const Quantization& by, Q* to) {
  const hn::Rebind<Q, D> d;
  hn::StoreU(hn::DemoteTo(d, WholeOf(scaled, by)), d, to);
}

// A vector of sums by vectors of scales.
template <typename Q>
HWY_INLINE void StoreRequantized(const std::int32_t* from, V x_scale, V w_scale, const Quantization& by,
                                 Q* to) {
  const V factor = hn::Div(hn::Mul(x_scale, w_scale), hn::Set(D(), by.scale));
  StoreRounded(hn::Mul(hn::ConvertTo(D(), hn::LoadU(DI(), from)), factor), by, to);
}

// Quotients by a scale to the nearest, as a division gives them.
struct ByDivision {
  V scale;
  explicit ByDivision(const Quantization& by) : scale(hn::Set(D(), by.scale)) {}
  HWY_INLINE hn::Vec<DI> Whole(V value, const Quantization& by) const {
    return WholeOf(hn::Div(value, scale), by);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// The same, without the wait for a division: a product with the inverse, corrected by what is left of the
// number (Markstein's theorem). The number is held in the range of the results first, so that infinities and
// NaN need no correction. Unless it cannot be far from that range, which all bytes are in then.
template <bool kHeld>
struct ByInverse {
  V scale, inverse, least, most;
  explicit ByInverse(const Quantization& by)
      : scale(hn::Set(D(), by.scale)),
        inverse(hn::Set(D(), 1 / by.scale)),
        least(hn::Set(D(), static_cast<float>(by.least - by.zero) * by.scale)),
        most(hn::Set(D(), static_cast<float>(by.most - by.zero) * by.scale)) {}
  HWY_INLINE hn::Vec<DI> Whole(V value, const Quantization& by) const {
    constexpr float kNoFractions = 12582912.0F;  // 1.5 * 2^23: the last bit of such numbers is worth 1
    // These CPUs' instructions give the second operand if one is NaN.
    if constexpr (kHeld) value = hn::Min(hn::Max(value, least), most);
    const V product = hn::Mul(value, inverse);
    const V quotient = hn::MulAdd(hn::NegMulAdd(product, scale, value), inverse, product);
    const auto shifted = hn::BitCast(DI(), hn::Add(quotient, hn::Set(D(), kNoFractions)));
    const auto first = hn::BitCast(DI(), hn::Set(D(), kNoFractions - static_cast<float>(by.zero)));
    return hn::Sub(shifted, first);
  }
};

// Whether neither products with the inverse nor what they leave underflow or overflow.
inline bool HasInverse(const Quantization& by) { return by.scale > 1e-27F && by.scale < 1e27F; }

// Whether numbers of this magnitude have quotients that are rounded well, and conversion to bytes holds them.
template <typename Q>
bool IsInRange(const Quantization& by, float most) {
  using Limits = std::numeric_limits<Q>;
  return most < by.scale * 1e6F && by.least == Limits::min() && by.most == Limits::max();
}

// Calls body(way of dividing) for numbers of at most this magnitude, to bytes of type Q.
template <typename Q, class Body>
HWY_INLINE void ForWay(const Quantization& by, float most, const Body& body) {
  if (!HasInverse(by)) return body(ByDivision(by));
  if (IsInRange<Q>(by, most)) return body(ByInverse<false>(by));
  body(ByInverse<true>(by));
}

#else

template <typename Q, class Body>
HWY_INLINE void ForWay(const Quantization& by, float, const Body& body) {
  body(ByDivision(by));
}

#endif

// to[i] = whole(i), which are whole numbers, as bytes. `count` is a multiple of the lanes.
template <typename Q, class Whole>
HWY_INLINE void StoreBytes(std::int64_t count, Q* to, const Whole& whole) {
  const hn::Rebind<Q, D> d;
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  // Four vectors become one of bytes at once.
  for (; i + 4 * Lanes() <= count; i += 4 * Lanes()) {
    const auto pair = [&](std::int64_t at)
                          HWY_ATTR { return _mm256_packs_epi32(whole(at).raw, whole(at + Lanes()).raw); };
    const __m256i low = pair(i), high = pair(i + 2 * Lanes());
    const __m256i bytes =
        std::is_signed_v<Q> ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
#endif
  for (; i < count; i += Lanes()) hn::StoreU(hn::DemoteTo(d, whole(i)), d, to + i);
}

template <typename Q>
void Quantize(const float* from, std::int64_t count, const Quantization& by, Q* to) {
  ForWay<Q>(by, std::numeric_limits<float>::infinity(), [&](const auto& way) HWY_ATTR {
    const hn::Rebind<Q, D> d;
    const auto store = [&](V value, Q* at)
                           HWY_ATTR { hn::StoreU(hn::DemoteTo(d, way.Whole(value, by)), d, at); };
    const auto run = [&](std::int64_t i) HWY_ATTR { store(hn::LoadU(D(), from + i), to + i); };
    if (ForVectors(count, run)) return;
    HWY_ALIGN float values[hn::MaxLanes(D())] = {};
    Q results[hn::MaxLanes(D())];
    std::copy_n(from, count, values);
    store(hn::Load(D(), values), results);
    std::copy_n(results, count, to);
  });
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

// Zeros of one element each, or of none.
template <typename Q>
HWY_INLINE hn::Vec<DI> ZerosAt(const Q* zeros) {
  return zeros == nullptr ? hn::Zero(DI()) : hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<Q, D>(), zeros));
}

template <typename Q>
HWY_INLINE void StoreQuantizedEach(const float* from, const float* scales, const Q* zeros, Q* to) {
  using Limits = std::numeric_limits<Q>;
  const V scaled = hn::Div(hn::LoadU(D(), from), hn::LoadU(D(), scales));
  const auto rounded = RoundedBy(D(), scaled, hn::ConvertTo(D(), ZerosAt(zeros)),
                                 static_cast<float>(Limits::min()), static_cast<float>(Limits::max()));
  const hn::Rebind<Q, D> d;
  hn::StoreU(hn::DemoteTo(d, rounded), d, to);
}

template <typename Q>
HWY_INLINE void StoreDequantizedEach(const Q* from, const float* scales, const Q* zeros, float* to) {
  const auto wide = hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<Q, D>(), from));
  const V shifted = hn::ConvertTo(D(), hn::Sub(wide, ZerosAt(zeros)));
  hn::StoreU(hn::Mul(shifted, hn::LoadU(D(), scales)), D(), to);
}

// Calls each(from, scales, zeros, to) for vectors of elements; a few are padded to one.
template <typename From, typename Q, typename To, typename Each>
HWY_INLINE void ForEach(const From* from, std::int64_t count, const float* scales, const Q* zeros, To* to,
                        const Each& each) {
  const auto run = [&](std::int64_t i) HWY_ATTR {
    each(from + i, scales + i, zeros == nullptr ? nullptr : zeros + i, to + i);
  };
  if (ForVectors(count, run)) return;
  From values[hn::MaxLanes(D())] = {};
  float of_values[hn::MaxLanes(D())] = {};
  Q zeros_of_values[hn::MaxLanes(D())] = {};
  To results[hn::MaxLanes(D())];
  std::copy_n(from, count, values);
  std::copy_n(scales, count, of_values);
  if (zeros != nullptr) std::copy_n(zeros, count, zeros_of_values);
  each(values, of_values, zeros == nullptr ? nullptr : zeros_of_values, results);
  std::copy_n(results, count, to);
}

template <typename Q>
void QuantizeEach(const float* from, std::int64_t count, const float* scales, const Q* zeros, Q* to) {
  ForEach(from, count, scales, zeros, to,
          [](const float* x, const float* by, const Q* zero, Q* out)
              HWY_ATTR { StoreQuantizedEach(x, by, zero, out); });
}

template <typename Q>
void DequantizeEach(const Q* from, std::int64_t count, const float* scales, const Q* zeros, float* to) {
  ForEach(from, count, scales, zeros, to,
          [](const Q* x, const float* by, const Q* zero, float* out)
              HWY_ATTR { StoreDequantizedEach(x, by, zero, out); });
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

// With one number b for all, the result is a * FactorOf(b) + TermOf(b).
struct SumOfVectors {
  HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
  static float MostOf(float a, float b) { return a + b; }
  static double FactorOf(double) { return 1; }
  static double TermOf(double b) { return b; }
};
struct ProductOfVectors {
  HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
  static float MostOf(float a, float b) { return a * b; }
  static double FactorOf(double b) { return b; }
  static double TermOf(double) { return 0; }
};

// An operand of bytes, and one that is the same byte for all elements.
template <typename Q>
struct EachByte {
  const Q* from;
  const Quantization& by;
  HWY_INLINE V At(std::int64_t i) const { return Dequantized(from + i, by); }
  // No byte gives a larger magnitude.
  float Most() const { return std::fabs(by.scale) * static_cast<float>(512 + std::abs(by.zero)); }
};
struct OneByte {
  V value;
  float number;
  HWY_INLINE V At(std::int64_t) const { return value; }
  float Most() const { return std::fabs(number); }
};

template <class Op, typename Q, class B>
HWY_NOINLINE void OfPairs(const EachByte<Q>& a, const B& b, std::int64_t count, const Quantization& by,
                          Q* to) {
  ForWay<Q>(by, Op::MostOf(a.Most(), b.Most()), [&](const auto& way) HWY_ATTR {
    StoreBytes(count, to, [&](std::int64_t i) HWY_ATTR { return way.Whole(Op()(a.At(i), b.At(i)), by); });
  });
}

// Bytes become others by one factor and one term. Only all 256 of them can tell whether these round as the
// steps do that they stand for.
template <typename Q>
HWY_NOINLINE void MapByFactor(const Q* from, float factor, float term, std::int64_t count, Q* to) {
  const V by = hn::Set(D(), factor), more = hn::Set(D(), term);
  const hn::Rebind<Q, D> d;
  StoreBytes(count, to, [&](std::int64_t i) HWY_ATTR {
    const V value = hn::ConvertTo(D(), hn::PromoteTo(DI(), hn::LoadU(d, from + i)));
    const V mapped = hn::MulAdd(value, by, more);
#if HWY_TARGET == HWY_AVX2
    // All 256 bytes tell of what is too large for an integer, too.
    return hn::Vec<DI>{_mm256_cvtps_epi32(mapped.raw)};
#else
    return hn::NearestInt(mapped);
#endif
  });
}

// Does the same as OfPairs if a factor and a term do. Returns false otherwise.
template <class Op, typename Q>
bool MapBytesOf(const EachByte<Q>& a, const OneByte& b, std::int64_t count, const Quantization& by, Q* to) {
  constexpr int kBytes = 256;
  constexpr std::int64_t kWorthTrying = 4096;
  if (count < kWorthTrying) return false;
  const double scale = static_cast<double>(a.by.scale) * Op::FactorOf(static_cast<double>(b.number));
  const double term = Op::TermOf(static_cast<double>(b.number)) - scale * a.by.zero;
  const auto factor = static_cast<float>(scale / static_cast<double>(by.scale));
  const auto more = static_cast<float>(term / static_cast<double>(by.scale) + by.zero);
  Q bytes[kBytes], expected[kBytes], mapped[kBytes];
  for (int i = 0; i < kBytes; ++i) bytes[i] = static_cast<Q>(i);
  OfPairs<Op>(EachByte<Q>{bytes, a.by}, b, kBytes, by, expected);
  MapByFactor(bytes, factor, more, kBytes, mapped);
  if (!std::equal(expected, expected + kBytes, mapped)) return false;
  MapByFactor(a.from, factor, more, count, to);
  return true;
}

// The rest goes by a last vector over the one before it, which is computed first, because `to` may be `a`.
// Few elements are padded to a vector.
template <class Op, typename Q>
void OfTwo(const Q* a, const Quantization& of_a, const Q* b, std::int64_t b_step, const Quantization& of_b,
           std::int64_t count, const Quantization& by, Q* to) {
  const float first = static_cast<float>(b[0] - of_b.zero) * of_b.scale;
  const OneByte repeated{hn::Set(D(), first), first};
  const auto run = [&](const Q* left, const Q* right, std::int64_t some, Q* out) HWY_ATTR {
    if (b_step == 0)
      OfPairs<Op>(EachByte<Q>{left, of_a}, repeated, some, by, out);
    else
      OfPairs<Op>(EachByte<Q>{left, of_a}, EachByte<Q>{right, of_b}, some, by, out);
  };
  const std::int64_t whole = count / Lanes() * Lanes(), last = count - Lanes();
  Q results[hn::MaxLanes(D())] = {};
  if (last < 0) {
    Q left[hn::MaxLanes(D())] = {};
    Q right[hn::MaxLanes(D())] = {};
    std::copy_n(a, count, left);
    if (b_step != 0) std::copy_n(b, count, right);
    run(left, right, Lanes(), results);
    std::copy_n(results, count, to);
    return;
  }
  if (whole != count) run(a + last, b + last * b_step, Lanes(), results);
  if (b_step != 0 || !MapBytesOf<Op>(EachByte<Q>{a, of_a}, repeated, whole, by, to)) run(a, b, whole, to);
  if (whole != count) std::copy_n(results, Lanes(), to + last);
}

template <typename Q>
void Add(const Q* a, const Quantization& of_a, const Q* b, std::int64_t b_step, const Quantization& of_b,
         std::int64_t count, const Quantization& by, Q* to) {
  OfTwo<SumOfVectors>(a, of_a, b, b_step, of_b, count, by, to);
}
template <typename Q>
void Multiply(const Q* a, const Quantization& of_a, const Q* b, std::int64_t b_step, const Quantization& of_b,
              std::int64_t count, const Quantization& by, Q* to) {
  OfTwo<ProductOfVectors>(a, of_a, b, b_step, of_b, count, by, to);
}

template <typename Q>
HWY_INLINE void StorePRelu(const Q* from, const Quantization& of_from, const float* slopes,
                           const Quantization& by, Q* to) {
  const V value = Dequantized(from, of_from);
  const V scaled = hn::Mul(value, hn::LoadU(D(), slopes));
  StoreRounded(hn::Div(hn::IfThenElse(hn::Lt(value, hn::Zero(D())), scaled, value), hn::Set(D(), by.scale)),
               by, to);
}

template <typename Q>
void PRelu(const Q* from, const Quantization& of_from, const float* slopes, std::int64_t period,
           std::int64_t count, const Quantization& by, Q* to) {
  // Vectors follow each other, but for the last one, so their first slopes do.
  std::int64_t next = 0, slope = 0;
  const auto run = [&](std::int64_t i) HWY_ATTR {
    slope += i - next;
    next = i;
    while (slope >= period) slope -= period;
    while (slope < 0) slope += period;
    StorePRelu(from + i, of_from, slopes + slope, by, to + i);
  };
  if (ForVectors(count, run)) return;
  Q values[hn::MaxLanes(D())] = {};
  Q results[hn::MaxLanes(D())];
  HWY_ALIGN float of_values[hn::MaxLanes(D())];
  std::copy_n(from, count, values);
  for (std::int64_t i = 0; i < Lanes(); ++i) of_values[i] = slopes[i % period];
  StorePRelu(values, of_from, of_values, by, results);
  std::copy_n(results, count, to);
}

void Widen(const float* from, std::int64_t count, float* least, float* most) {
  const D d;
  V low = hn::Set(d, *least), high = hn::Set(d, *most);
  V low_b = low, low_c = low, low_e = low, high_b = high, high_c = high, high_e = high;
  const auto widen = [d](const float* at, V& lower, V& upper) HWY_ATTR {
    const V x = hn::LoadU(d, at);
    lower = hn::IfThenElse(hn::Lt(x, lower), x, lower);
    upper = hn::IfThenElse(hn::Gt(x, upper), x, upper);
  };
  std::int64_t i = 0;
  // Several at once, since each waits for the one before it.
  for (; i + 4 * Lanes() <= count; i += 4 * Lanes()) {
    widen(from + i, low, high);
    widen(from + i + Lanes(), low_b, high_b);
    widen(from + i + 2 * Lanes(), low_c, high_c);
    widen(from + i + 3 * Lanes(), low_e, high_e);
  }
  for (; i + Lanes() <= count; i += Lanes()) widen(from + i, low, high);
  low = hn::Min(hn::Min(low, low_b), hn::Min(low_c, low_e));
  high = hn::Max(hn::Max(high, high_b), hn::Max(high_c, high_e));
  *least = hn::GetLane(hn::MinOfLanes(d, low));
  *most = hn::GetLane(hn::MaxOfLanes(d, high));
  for (; i < count; ++i) {
    *least = std::min(*least, from[i]);
    *most = std::max(*most, from[i]);
  }
}

// Sums of eight bytes each are one instruction. Signed ones are taken as what they are more than the least.
template <typename Q>
std::int64_t SumOfBytes(const Q* from, std::int64_t count) {
  std::int64_t total = 0, i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  constexpr std::int32_t kLeast = std::numeric_limits<Q>::min();
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Repartition<std::uint64_t, decltype(d)> sums;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  const auto flip = hn::Set(d, static_cast<std::uint8_t>(kLeast));
  auto even = hn::Zero(sums), odd = even;
  const auto add = [&](auto& sum, std::int64_t at)
                       HWY_ATTR { sum = hn::Add(sum, hn::SumsOf8(hn::Xor(hn::LoadU(d, bytes + at), flip))); };
  for (; i + 2 * lanes <= count; i += 2 * lanes) add(even, i), add(odd, i + lanes);
  for (; i + lanes <= count; i += lanes) add(even, i);
  HWY_ALIGN std::uint64_t of_lanes[hn::MaxLanes(hn::Repartition<std::uint64_t, decltype(d)>())];
  hn::Store(hn::Add(even, odd), sums, of_lanes);
  total = i * kLeast;
  for (std::size_t k = 0; k < hn::Lanes(sums); ++k) total += static_cast<std::int64_t>(of_lanes[k]);
#endif
  for (; i < count; ++i) total += from[i];
  return total;
}

QuantizedMath<std::uint8_t> OfUnsigned() {
  return {&Quantize, &Dequantize, &QuantizeEach, &DequantizeEach, &Requantize,
          &Add,      &Multiply,   &PRelu,        &SumOfBytes};
}
QuantizedMath<std::int8_t> OfSigned() {
  return {&Quantize, &Dequantize, &QuantizeEach, &DequantizeEach, &Requantize,
          &Add,      &Multiply,   &PRelu,        &SumOfBytes};
}
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

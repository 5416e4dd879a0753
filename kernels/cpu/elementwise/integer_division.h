// SPDX-License-Identifier: Apache-2.0
//
// Quotients and remainders of rows of integers, as operations of Elementwise. A CPU has no vectors of integer
// division, so the quotients are computed in floats that hold them exactly. Integers of at most 16 bits are
// divided in f32, others in f64. A rounded quotient of integers below 2^(p-1), p being the bits of a float's
// mantissa, is never rounded up to the next integer, so it may be truncated.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// The quotient a / b is truncated toward zero. x / 0 and x mod 0 are 0.
enum class DivisionResult { kQuotient, kRestOfDividendSign, kRestOfDivisorSign };

template <typename T>
T DivideIntegers(T a, T b) {
  if (b == 0) return 0;
  if (b == static_cast<T>(-1)) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
  }
  return static_cast<T>(a / b);
}

// The result from the quotient, which is 0 where b is 0.
template <DivisionResult kResult, typename T>
T FromQuotient(T quotient, T a, T b) {
  if constexpr (kResult == DivisionResult::kQuotient) return quotient;
  const auto product = static_cast<Wrapping<T>>(quotient) * static_cast<Wrapping<T>>(b);
  const auto rest = static_cast<T>(static_cast<Wrapping<T>>(a) - product);
  const T defined = b == 0 ? T{0} : rest;
  if constexpr (kResult == DivisionResult::kRestOfDivisorSign && std::is_signed_v<T>) {
    const bool turns = (defined != 0) & ((defined ^ b) < 0);
    return turns ? static_cast<T>(defined + b) : defined;
  }
  return defined;
}

// For integers from -2^23 to 2^23, without a branch.
template <typename T>
T QuotientOfSmall(T a, T b) {
  const auto dividend = static_cast<float>(static_cast<std::int32_t>(a));
  const float divisor = b == 0 ? 1.0F : static_cast<float>(static_cast<std::int32_t>(b));
  const auto quotient = ToTypeInRange<std::int32_t>(dividend / divisor);
  return b == 0 ? T{0} : static_cast<T>(quotient);
}

// For integers from -2^51 to 2^51. Next to 1.5 * 2^52 the last bit of an f64 is worth 1, so that the bits of
// such a number are an integer and a constant.
template <typename T>
T QuotientOfModerate(T a, T b) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    const bool is_unit = (b == 0) | (b == -1);
    const auto quotient = ToTypeInRange<T>(static_cast<double>(a) / static_cast<double>(is_unit ? T{1} : b));
    const T signed_quotient = b == -1 ? static_cast<T>(0U - static_cast<std::uint32_t>(a)) : quotient;
    return b == 0 ? T{0} : signed_quotient;
  }
  constexpr double kOffset = 0x1.8p52;
  constexpr auto kOffsetBits = std::bit_cast<std::uint64_t>(kOffset);
  const double dividend = std::bit_cast<double>(static_cast<std::uint64_t>(a) + kOffsetBits) - kOffset;
  const double divisor = std::bit_cast<double>(static_cast<std::uint64_t>(b) + kOffsetBits) - kOffset;
  const double quotient = std::trunc(dividend / (divisor == 0 ? 1.0 : divisor));
  const auto whole = static_cast<T>(std::bit_cast<std::uint64_t>(quotient + kOffset) - kOffsetBits);
  return b == 0 ? T{0} : whole;
}

// Whether all are from -2^kBits to 2^kBits.
template <int kBits, typename T>
bool AreWithin(RowOf<const T> row, std::int64_t count) {
  if constexpr (sizeof(T) * 8 <= kBits) return true;
  using Bits = Wrapping<T>;
  Bits bits = 0;
  const auto magnitude_of = [](T x) {
    const Bits sign = std::is_signed_v<T> && x < 0 ? static_cast<Bits>(-1) : Bits{0};
    return static_cast<Bits>(static_cast<Bits>(x) ^ sign);
  };
  if (row.step == 0) {
    bits = magnitude_of(*row.data);
  } else {
    WideLoop([=, &bits] {
      Bits all = 0;
      for (std::int64_t i = 0; i < count; ++i) all |= magnitude_of(row.data[i]);
      bits = all;
    });
  }
  return std::uint64_t{bits} < std::uint64_t{1} << kBits;
}

template <typename T, DivisionResult kResult>
struct OnDivision {
  T operator()(T a, T b) const { return FromQuotient<kResult>(DivideIntegers(a, b), a, b); }
};

// The same, for rows whose elements are small or moderate.
template <typename T, DivisionResult kResult>
struct OnSmallDivision {
  T operator()(T a, T b) const { return FromQuotient<kResult>(QuotientOfSmall(a, b), a, b); }
};
template <typename T, DivisionResult kResult>
struct OnModerateDivision {
  T operator()(T a, T b) const { return FromQuotient<kResult>(QuotientOfModerate(a, b), a, b); }
};

template <typename T, DivisionResult kResult>
void RunRow(const OnDivision<T, kResult> op, std::int64_t count, RowOf<T> out, RowOf<const T> a,
            RowOf<const T> b) {
  constexpr std::int64_t kBlock = 512;
  const auto is_dense = [](std::int64_t step) { return step == 0 || step == 1; };
  const bool vectors = HasWideLoops() && out.step == 1 && is_dense(a.step) && is_dense(b.step);
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t size = std::min(count - at, kBlock);
    const RowOf<T> to{out.data + at * out.step, out.step};
    const RowOf<const T> from_a{a.data + at * a.step, a.step}, from_b{b.data + at * b.step, b.step};
    if constexpr (sizeof(T) <= 4) {
      if (vectors && AreWithin<23>(from_a, size) && AreWithin<23>(from_b, size)) {
        RunRow(OnSmallDivision<T, kResult>(), size, to, from_a, from_b);
        continue;
      }
    }
    if constexpr (sizeof(T) >= 4) {
      if (vectors && AreWithin<51>(from_a, size) && AreWithin<51>(from_b, size)) {
        RunRow(OnModerateDivision<T, kResult>(), size, to, from_a, from_b);
        continue;
      }
    }
    for (std::int64_t i = 0; i < size; ++i)
      to.data[i * to.step] = op(from_a.data[i * a.step], from_b.data[i * b.step]);
  }
}

template <typename T, DivisionResult kResult>
void RunContiguous(const OnDivision<T, kResult> op, std::int64_t count, T* out, const T* a, const T* b) {
  RunRow(op, count, RowOf<T>{out, 1}, RowOf<const T>{a, 1}, RowOf<const T>{b, 1});
}

}  // namespace rewire::kernel::cpu

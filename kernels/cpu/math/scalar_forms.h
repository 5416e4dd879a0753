// SPDX-License-Identifier: Apache-2.0
//
// The functions of kernels/contract/scalar_functions.h, of one number: functions::Relu(x) and so on. 16-bit
// floats are computed as floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/contract/scalar_functions.h"

namespace rewire::kernel::cpu::functions {

template <typename T>
constexpr T Negated(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));  // the least integer wraps
}
template <typename T>
T Magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < 0 ? Negated(x) : x;
}
template <typename T>
constexpr T Multiplied(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
}
template <typename T>
constexpr T Raised(T x, T low) {
  return x < low ? low : x;
}
template <typename T>
constexpr T Lowered(T x, T high) {
  return high < x ? high : x;
}
// A product that is rounded, where the compiler could make one operation of it and a sum. Through memory,
// which is the only way that all compilers respect.
template <typename T>
T RoundedProduct(T x, T y) {
#if defined(__FP_FAST_FMA) || defined(__FP_FAST_FMAF)
  const volatile T product = x * y;
  return product;
#else
  return x * y;
#endif
}

#define NUMBER(c) static_cast<T>(c)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) Multiplied<T>(a, b)
#define DIV(a, b) ((a) / (b))
#define NEG(a) Negated<T>(a)
#define ABS(a) Magnitude<T>(a)
#define PRODUCT(a, b) RoundedProduct<T>(a, b)
#define MUL_ADD(a, b, c) ((a) * (b) + (c))
#define LESS(a, b) ((a) < (b))
#define IS_NAN(a) ((a) != (a))
#define EITHER(p, q) ((p) || (q))
#define SELECT(p, a, b) ((p) ? (a) : (b))
#define AT_LEAST(x, low) Raised<T>(x, low)
#define AT_MOST(x, high) Lowered<T>(x, high)
#define EXP(a) std::exp(a)
#define EXPM1(a) std::expm1(a)
#define LOG1P(a) std::log1p(a)
#define TANH(a) std::tanh(a)
#define ERF(a) std::erf(a)
#define CALL(name, ...) name<T>(__VA_ARGS__)
#define REWIRE_OF_ONE(name, x, ...) \
  template <typename T>             \
  T name(T x) {                     \
    return __VA_ARGS__;             \
  }
#define REWIRE_OF_TWO(name, x, y, ...) \
  template <typename T>                \
  T name(T x, T y) {                   \
    return __VA_ARGS__;                \
  }
#define REWIRE_OF_THREE(name, x, y, z, ...) \
  template <typename T>                     \
  T name(T x, T y, T z) {                   \
    return __VA_ARGS__;                     \
  }

REWIRE_FUNCTIONS_OF_NUMBERS(REWIRE_OF_ONE, REWIRE_OF_TWO, REWIRE_OF_THREE)
REWIRE_FUNCTIONS_OF_REALS(REWIRE_OF_ONE, REWIRE_OF_TWO, REWIRE_OF_THREE)

#undef NUMBER
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef ABS
#undef PRODUCT
#undef MUL_ADD
#undef LESS
#undef IS_NAN
#undef EITHER
#undef SELECT
#undef AT_LEAST
#undef AT_MOST
#undef EXP
#undef EXPM1
#undef LOG1P
#undef TANH
#undef ERF
#undef CALL
#undef REWIRE_OF_ONE
#undef REWIRE_OF_TWO
#undef REWIRE_OF_THREE

}  // namespace rewire::kernel::cpu::functions

// SPDX-License-Identifier: Apache-2.0
// Binary arithmetic with broadcasting. Integers wrap; nothing that they are given traps.
#include <cmath>
#include <type_traits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

template <typename T>
T DivideIntegers(T a, T b) {
  if (b == 0) return 0;
  if (b == static_cast<T>(-1)) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
  }
  return static_cast<T>(a / b);
}

template <typename T>
T RemainderOfIntegers(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

struct Add {
  static constexpr const char kName[] = "rewire.add";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Subtract {
  static constexpr const char kName[] = "rewire.sub";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct Multiply {
  static constexpr const char kName[] = "rewire.mul";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct Divide {
  static constexpr const char kName[] = "rewire.div";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else
      return DivideIntegers(a, b);
  }
};

// The result has the divisor's sign.
struct Modulo {
  static constexpr const char kName[] = "rewire.mod";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    } else {
      const T rest = RemainderOfIntegers(a, b);
      if constexpr (std::is_unsigned_v<T>) return rest;
      return rest != 0 && (rest ^ b) < 0 ? static_cast<T>(rest + b) : rest;
    }
  }
};

// The result has the dividend's sign.
struct Remainder {
  static constexpr const char kName[] = "rewire.fmod";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(a, b);
    else
      return RemainderOfIntegers(a, b);
  }
};

struct Power {
  static constexpr const char kName[] = "rewire.pow";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(base, exponent);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (exponent < 0)
          return base == 1 || (base == -1 && (exponent & 1) == 0) ? T{1} : base == -1 ? base : T{0};
      }
      Wrapping<T> result = 1;
      auto square = static_cast<Wrapping<T>>(base);
      for (; exponent != 0; exponent = static_cast<T>(exponent >> 1)) {
        if ((exponent & 1) != 0) result *= square;
        square *= square;
      }
      return static_cast<T>(result);
    }
  }
};

struct Minimum {
  static constexpr const char kName[] = "rewire.min";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;  // NaN comes through from either side
  }
};

struct Maximum {
  static constexpr const char kName[] = "rewire.max";
  using Accepts = Numbers;
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

template <typename Op>
struct Binary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    Elementwise<2> loop(out, {a, b}, {"a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "a", a, [&](auto tag) {
      using T = typename decltype(tag)::type;
      loop.Run<T, T, T>(Op());
      return Status();
    });
  }
};

template <typename Op>
constexpr Kernel Row(const char* meaning) {
  return Describe<Binary<Op>>("a, b, out", "f32 f64 i64 i32 i8 u8", "", meaning);
}

}  // namespace

std::span<const Kernel> ArithmeticKernels() {
  static constexpr Kernel kKernels[] = {
      Row<Add>("a + b; integers wrap"),
      Row<Subtract>("a - b; integers wrap"),
      Row<Multiply>("a * b; integers wrap"),
      Row<Divide>("a / b; integers are truncated toward zero, and x / 0 is 0"),
      Row<Modulo>("a - floor(a / b) * b, with b's sign; for integers x mod 0 is 0"),
      Row<Remainder>("a - trunc(a / b) * b, with a's sign; for integers x mod 0 is 0"),
      Row<Power>("a to the power b; integers wrap, a negative exponent truncates toward zero"),
      Row<Minimum>("the smaller; NaN if either is"),
      Row<Maximum>("the larger; NaN if either is"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

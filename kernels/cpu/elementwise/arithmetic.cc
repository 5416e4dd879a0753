// SPDX-License-Identifier: Apache-2.0
//
// Binary arithmetic with broadcasting. Integers wrap. No operands cause a trap.
#include <cmath>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/few_elements.h"
#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/elementwise/integer_division.h"
#include "rewire/kernels/cpu/elementwise/pair_rows.h"
#include "rewire/kernels/cpu/elementwise/whole_powers.h"
#include "rewire/kernels/cpu/math/pair_math.h"
#include "rewire/kernels/cpu/math/scalar_forms.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"

namespace rewire::kernel::cpu {
namespace {

struct Add {
  static constexpr bool kIgnoresSign = true;
  static constexpr const char* kName = names::kAdd;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Subtract {
  static constexpr bool kIgnoresSign = true;
  static constexpr const char* kName = names::kSub;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct Multiply {
  static constexpr bool kIgnoresSign = true;
  static constexpr const char* kName = names::kMul;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct Divide {
  static constexpr const char* kName = names::kDiv;
  static constexpr DivisionResult kDivision = DivisionResult::kQuotient;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

// The result has the divisor's sign.
struct Modulo {
  static constexpr const char* kName = names::kMod;
  static constexpr DivisionResult kDivision = DivisionResult::kRestOfDivisorSign;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

// The result has the dividend's sign.
struct Remainder {
  static constexpr const char* kName = names::kFmod;
  static constexpr DivisionResult kDivision = DivisionResult::kRestOfDividendSign;
  static constexpr PairMath::Row PairMath::*kRow = &PairMath::fmod;
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T a, T b) const {
    return std::fmod(a, b);
  }
};

struct Power {
  static constexpr const char* kName = names::kPow;
  static constexpr PairMath::Row PairMath::*kRow = &PairMath::pow;
  using Accepts = AnyNumbers;
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

// The power of which the exponent is 2.
struct Square {
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T base, T) const {
    return Multiply()(base, base);
  }
};

// Functions of kernels/contract/scalar_functions.h.
#define REWIRE_BINARY(name, kernel)              \
  struct name {                                  \
    static constexpr const char* kName = kernel; \
    using Accepts = AnyNumbers;                  \
    template <typename T>                        \
    T operator()(T a, T b) const {               \
      return functions::name(a, b);              \
    }                                            \
  };
REWIRE_BINARY(Min, names::kMin)
REWIRE_BINARY(Max, names::kMax)
REWIRE_BINARY(AtLeast, names::kAtLeast)
REWIRE_BINARY(AtMost, names::kAtMost)
REWIRE_BINARY(PRelu, names::kPRelu)
#undef REWIRE_BINARY

// Whether integers of one size, signed or not, give the same bits.
template <typename Op, typename = void>
inline constexpr bool kIgnoresSign = false;
template <typename Op>
inline constexpr bool kIgnoresSign<Op, std::void_t<decltype(Op::kIgnoresSign)>> = true;

// An operation on integers that divides has a DivisionResult here.
template <typename Op, typename = void>
inline constexpr bool kDivides = false;
template <typename Op>
inline constexpr bool kDivides<Op, std::void_t<decltype(Op::kDivision)>> = true;
// For the others it has a value too: clang 14 looks it up for them in the branch that they do not take.
template <typename Op, typename = void>
inline constexpr DivisionResult kDivisionOf = DivisionResult::kQuotient;
template <typename Op>
inline constexpr DivisionResult kDivisionOf<Op, std::void_t<decltype(Op::kDivision)>> = Op::kDivision;

// The function of two rows of floats, if there is one.
template <typename Op, typename = void>
inline constexpr PairMath::Row PairMath::*kRowOf = nullptr;
template <typename Op>
inline constexpr PairMath::Row PairMath::*kRowOf<Op, std::void_t<decltype(Op::kRow)>> = Op::kRow;

template <typename Op>
struct Binary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    if constexpr (kRowOf<Op> == nullptr) {
      if (RunOnFew<float>(OnElements<float>(Op()), out, a, b)) return Status();
    }
    Elementwise<2> loop(out, {a, b}, {"a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = Checks().SameDType("b", b, "a", a).SameDType("out", out, "a", a).Take(); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "a", a, [&](auto tag) {
      using Given = typename decltype(tag)::type;
      using T = std::conditional_t<kIgnoresSign<Op>, Signless<Given>, Given>;
      if constexpr (std::is_same_v<Computed<T>, float> && kRowOf<Op> != nullptr)
        return loop.Run<T, T, T>(OnPairs<T>{BestPairMath().*kRowOf<Op>});
      else if constexpr (std::is_integral_v<T> && kDivides<Op>)
        return loop.Run<T, T, T>(OnDivision<T, kDivisionOf<Op>>());
      else
        return loop.Run<T, T, T>(OnElementsInBlocks<T>(Op()));
    });
  }
};

// The exponent may be of another type: such powers are computed in f64 and held in the base's range.
struct Pow {
  static constexpr const char* kName = Power::kName;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    if (SameDType(a.dtype(), b.dtype()))
      return IsTwo(b) ? Binary<Square>()(a, b, out) : Binary<Power>()(a, b, out);
    Elementwise<2> loop(out, {a, b}, {"a", "b"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "a", a); !s.ok()) return s;
    return ForType(Types<float, double, std::int32_t, std::int64_t>(), "a", a, [&](auto base_tag) {
      using Base = typename decltype(base_tag)::type;
      return ForType(Types<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(), "b", b,
                     [&](auto tag) {
                       using Exponent = typename decltype(tag)::type;
                       if constexpr (std::is_same_v<Base, float> && std::is_integral_v<Exponent>)
                         return loop.Run<float, float, Exponent>(OnWholeExponents<Exponent>());
                       else
                         return loop.Run<Base, Base, Exponent>([](Base x, Exponent y) {
                           return ToType<Base>(std::pow(static_cast<double>(x), static_cast<double>(y)));
                         });
                     });
    });
  }

 private:
  // The usual exponent. A product takes a tenth of a power's time, and it is the same number.
  static bool IsTwo(TensorView exponent) {
    if (exponent.size() != 1 || !exponent.IsOnHost()) return false;
    bool is_two = false;
    static_cast<void>(ForType(AnyNumbers(), "b", exponent, [&](auto tag) {
      using T = typename decltype(tag)::type;
      is_two = static_cast<Computed<T>>(*exponent.data<T>()) == Computed<T>{2};
      return Status();
    }));
    return is_two;
  }
};

template <typename Op>
constexpr Kernel Row(const char* meaning) {
  return Describe<Binary<Op>>("a, b -> out over a|b", "any number", "", meaning, kElementwise);
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
      Describe<Pow>("a, b -> out over a|b", "a, out any number; b any number", "",
                    "a to the power b; integers wrap, a negative exponent truncates toward zero; with b of "
                    "another type computed in f64 and held in a's range (f32 f64 i32 i64, b also u32 u64)",
                    kElementwise),
      Row<PRelu>("a, or a * b below 0"),
      Row<Min>("the smaller; NaN if either is"),
      Row<Max>("the larger; NaN if either is"),
      Row<AtLeast>("b where a is below it, else a: also if either is NaN"),
      Row<AtMost>("b where a is above it, else a: also if either is NaN"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

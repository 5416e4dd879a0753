// SPDX-License-Identifier: Apache-2.0
// Functions of one element.
#include <cmath>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/math/scalar_forms.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// A function of kernels/contract/scalar_functions.h; `kVector` is that of rows of f32, if there is one.
#define REWIRE_UNARY(name, kernel, accepts, vector)              \
  struct name {                                                  \
    static constexpr const char* kName = kernel;                 \
    static constexpr VectorMath::Row VectorMath::*kRow = vector; \
    using Accepts = accepts;                                     \
    template <typename T>                                        \
    T operator()(T x) const {                                    \
      return functions::name(x);                                 \
    }                                                            \
  };
REWIRE_UNARY(Neg, names::kNeg, AnySigned, nullptr)
REWIRE_UNARY(Abs, names::kAbs, AnyNumbers, nullptr)
REWIRE_UNARY(Sign, names::kSign, AnyNumbers, nullptr)
REWIRE_UNARY(Relu, names::kRelu, AnySigned, nullptr)
REWIRE_UNARY(Sigmoid, names::kSigmoid, AnyFloats, &VectorMath::sigmoid)
REWIRE_UNARY(Softplus, names::kSoftplus, AnyFloats, &VectorMath::softplus)
REWIRE_UNARY(Softsign, names::kSoftsign, AnyFloats, nullptr)
REWIRE_UNARY(Reciprocal, names::kReciprocal, AnyFloats, nullptr)
#undef REWIRE_UNARY

// Half goes to the even neighbor, in the rounding mode that every process starts with.
struct Round {
  static constexpr const char* kName = names::kRound;
  static constexpr VectorMath::Row VectorMath::*kRow = &VectorMath::round;
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};

// Downward and upward. Compilers make vectors of rounding to the nearest, but not of these, which may trap.
struct Floor {
  static constexpr const char* kName = names::kFloor;
  static constexpr VectorMath::Row VectorMath::*kRow = &VectorMath::floor;
  using Accepts = AnyFloats;
  float operator()(float x) const {
    const float nearest = std::nearbyint(x);
    return nearest > x ? nearest - 1 : nearest;
  }
  double operator()(double x) const { return std::floor(x); }
};
struct Ceil {
  static constexpr const char* kName = names::kCeil;
  static constexpr VectorMath::Row VectorMath::*kRow = &VectorMath::ceil;
  using Accepts = AnyFloats;
  float operator()(float x) const {
    const float nearest = std::nearbyint(x);
    return std::copysign(nearest < x ? nearest + 1 : nearest, x);
  }
  double operator()(double x) const { return std::ceil(x); }
};

// A function of the standard library for each floating type.
template <const char* kKernelName, float (*kFloat)(float), double (*kDouble)(double),
          VectorMath::Row VectorMath::*kVector = nullptr>
struct Math {
  static constexpr const char* kName = kKernelName;
  static constexpr VectorMath::Row VectorMath::*kRow = kVector;
  using Accepts = AnyFloats;
  float operator()(float x) const { return kFloat(x); }
  double operator()(double x) const { return kDouble(x); }
};

// The function of rows of floats that computes elements of type T, if there is one. Rounding is an
// instruction, which 16-bit floats need not go through blocks for.
template <typename Op, typename T>
inline constexpr VectorMath::Row VectorMath::*kRowOf = Op::kRow;
template <typename Op>
inline constexpr VectorMath::Row VectorMath::*kRowOf<Op, Float16> =
    Op::kRow == &VectorMath::floor || Op::kRow == &VectorMath::ceil || Op::kRow == &VectorMath::round
        ? nullptr
        : Op::kRow;

template <typename Op>
struct Unary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "x", x); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<Computed<T>, float> && kRowOf<Op, T> != nullptr)
        return loop.RunRows<T, T>(OnRowsInBlocks<T>(BestVectorMath().*kRowOf<Op, T>));
      else
        return loop.Run<T, T>(OnElementsInBlocks<T>(Op()));
    });
  }
};

struct BitNot {
  static constexpr const char* kName = names::kBitNot;
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "x", x); !s.ok()) return s;
    return ForType(Integers(), "x", x, [&](auto tag) {
      using T = Signless<typename decltype(tag)::type>;
      return loop.Run<T, T>([](T value) { return static_cast<T>(~value); });
    });
  }
};

struct Not {
  static constexpr const char* kName = names::kNot;
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (!x.Is<bool>()) return WrongDType(Bools(), "x", x);
    if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
    return loop.Run<std::uint8_t, std::uint8_t>(
        [](std::uint8_t value) -> std::uint8_t { return value == 0; });
  }
};

template <typename Op>
constexpr Kernel OfFloats(const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", "any float", "", meaning, kElementwise);
}
template <typename Op>
constexpr Kernel OfNumbers(const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", "any number", "", meaning, kElementwise);
}
template <typename Op>
constexpr Kernel OfSigned(const char* meaning) {
  return Describe<Unary<Op>>("x -> out over x", "any float, i64 i32 i16 i8", "", meaning, kElementwise);
}

}  // namespace

std::span<const Kernel> UnaryKernels() {
  static constexpr Kernel kKernels[] = {
      OfSigned<Neg>("-x; integers wrap"),
      OfNumbers<Abs>("the magnitude; the least integer stays"),
      OfNumbers<Sign>("-1, 0 or 1; NaN stays"),
      OfSigned<Relu>("max(x, 0); NaN stays"),
      OfFloats<Sigmoid>("1 / (1 + exp(-x))"),
      OfFloats<Softplus>("log(1 + exp(x))"),
      OfFloats<Softsign>("x / (1 + abs(x))"),
      OfFloats<Reciprocal>("1 / x"),
      OfFloats<Round>("to the nearest integer, halves to the even one"),
      OfFloats<Floor>("down to an integer"),
      OfFloats<Ceil>("up to an integer"),
      OfFloats<Math<names::kSqrt, std::sqrt, std::sqrt>>("square root"),
      OfFloats<Math<names::kExp, std::exp, std::exp, &VectorMath::exp>>("e to the power x"),
      OfFloats<Math<names::kLog, std::log, std::log, &VectorMath::log>>("natural logarithm"),
      OfFloats<Math<names::kSin, std::sin, std::sin, &VectorMath::sin>>("sine"),
      OfFloats<Math<names::kCos, std::cos, std::cos, &VectorMath::cos>>("cosine"),
      OfFloats<Math<names::kTan, std::tan, std::tan, &VectorMath::tan>>("tangent"),
      OfFloats<Math<names::kAsin, std::asin, std::asin, &VectorMath::asin>>("inverse sine"),
      OfFloats<Math<names::kAcos, std::acos, std::acos, &VectorMath::acos>>("inverse cosine"),
      OfFloats<Math<names::kAtan, std::atan, std::atan, &VectorMath::atan>>("inverse tangent"),
      OfFloats<Math<names::kSinh, std::sinh, std::sinh, &VectorMath::sinh>>("hyperbolic sine"),
      OfFloats<Math<names::kCosh, std::cosh, std::cosh, &VectorMath::cosh>>("hyperbolic cosine"),
      OfFloats<Math<names::kTanh, std::tanh, std::tanh, &VectorMath::tanh>>("hyperbolic tangent"),
      OfFloats<Math<names::kAsinh, std::asinh, std::asinh, &VectorMath::asinh>>("inverse hyperbolic sine"),
      OfFloats<Math<names::kAcosh, std::acosh, std::acosh, &VectorMath::acosh>>("inverse hyperbolic cosine"),
      OfFloats<Math<names::kAtanh, std::atanh, std::atanh, &VectorMath::atanh>>("inverse hyperbolic tangent"),
      OfFloats<Math<names::kErf, std::erf, std::erf, &VectorMath::erf>>("error function"),
      Describe<BitNot>("x -> out over x", "any integer", "", "every bit inverted", kElementwise),
      Describe<Not>("x -> out over x", "bool", "", "not x", kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

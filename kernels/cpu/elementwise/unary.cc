// SPDX-License-Identifier: Apache-2.0
// Functions of one element.
#include <cmath>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

struct Negate {
  static constexpr const char kName[] = "rewire.neg";
  using Accepts = AnySigned;
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));  // the least integer wraps
  }
};

struct Absolute {
  static constexpr const char kName[] = "rewire.abs";
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else if constexpr (std::is_unsigned_v<T>)
      return x;
    else
      return x < 0 ? Negate()(x) : x;
  }
};

struct Sign {
  static constexpr const char kName[] = "rewire.sign";
  using Accepts = AnyNumbers;
  template <typename T>
  T operator()(T x) const {
    if (x != x) return x;
    return static_cast<T>((x > 0) - (x < 0));
  }
};

struct Relu {
  static constexpr const char kName[] = "rewire.relu";
  using Accepts = AnySigned;
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? T{0} : x;  // NaN stays
  }
};

struct Sigmoid {
  static constexpr const char kName[] = "rewire.sigmoid";
  static constexpr VectorMath::Row VectorMath::*kRow = &VectorMath::sigmoid;
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return 1 / (1 + std::exp(-x));
  }
};

struct Softplus {
  static constexpr const char kName[] = "rewire.softplus";
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
};

struct Softsign {
  static constexpr const char kName[] = "rewire.softsign";
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return x / (1 + std::fabs(x));
  }
};

struct Reciprocal {
  static constexpr const char kName[] = "rewire.reciprocal";
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return 1 / x;
  }
};

// Half goes to the even neighbour, in the rounding mode that every process starts with.
struct Round {
  static constexpr const char kName[] = "rewire.round";
  using Accepts = AnyFloats;
  template <typename T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
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

// The function for rows of f32, if there is one.
template <typename Op, typename = void>
inline constexpr VectorMath::Row VectorMath::*kRowOf = nullptr;
template <typename Op>
inline constexpr VectorMath::Row VectorMath::*kRowOf<Op, std::void_t<decltype(Op::kRow)>> = Op::kRow;

template <typename Op>
struct Unary {
  static constexpr const char* kName = Op::kName;
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "x", x); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, float> && kRowOf<Op> != nullptr)
        return loop.RunRows<T, T>(BestVectorMath().*kRowOf<Op>);
      else
        return loop.Run<T, T>(OnElements<T>(Op()));
    });
  }
};

struct BitNot {
  static constexpr const char kName[] = "rewire.bit_not";
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
  static constexpr const char kName[] = "rewire.not";
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (!x.Is<bool>()) return WrongDType(Bools(), "x", x);
    if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
    return loop.Run<std::uint8_t, std::uint8_t>(
        [](std::uint8_t value) -> std::uint8_t { return value == 0; });
  }
};

constexpr char kSqrt[] = "rewire.sqrt";
constexpr char kExp[] = "rewire.exp";
constexpr char kLog[] = "rewire.log";
constexpr char kSin[] = "rewire.sin";
constexpr char kCos[] = "rewire.cos";
constexpr char kTan[] = "rewire.tan";
constexpr char kAsin[] = "rewire.asin";
constexpr char kAcos[] = "rewire.acos";
constexpr char kAtan[] = "rewire.atan";
constexpr char kSinh[] = "rewire.sinh";
constexpr char kCosh[] = "rewire.cosh";
constexpr char kTanh[] = "rewire.tanh";
constexpr char kAsinh[] = "rewire.asinh";
constexpr char kAcosh[] = "rewire.acosh";
constexpr char kAtanh[] = "rewire.atanh";
constexpr char kErf[] = "rewire.erf";
constexpr char kFloor[] = "rewire.floor";
constexpr char kCeil[] = "rewire.ceil";

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
      OfSigned<Negate>("-x; integers wrap"),
      OfNumbers<Absolute>("the magnitude; the least integer stays"),
      OfNumbers<Sign>("-1, 0 or 1; NaN stays"),
      OfSigned<Relu>("max(x, 0); NaN stays"),
      OfFloats<Sigmoid>("1 / (1 + exp(-x))"),
      OfFloats<Softplus>("log(1 + exp(x))"),
      OfFloats<Softsign>("x / (1 + abs(x))"),
      OfFloats<Reciprocal>("1 / x"),
      OfFloats<Round>("to the nearest integer, halves to the even one"),
      OfFloats<Math<kFloor, std::floor, std::floor>>("down to an integer"),
      OfFloats<Math<kCeil, std::ceil, std::ceil>>("up to an integer"),
      OfFloats<Math<kSqrt, std::sqrt, std::sqrt>>("square root"),
      OfFloats<Math<kExp, std::exp, std::exp, &VectorMath::exp>>("e to the power x"),
      OfFloats<Math<kLog, std::log, std::log, &VectorMath::log>>("natural logarithm"),
      OfFloats<Math<kSin, std::sin, std::sin>>("sine"),
      OfFloats<Math<kCos, std::cos, std::cos>>("cosine"),
      OfFloats<Math<kTan, std::tan, std::tan>>("tangent"),
      OfFloats<Math<kAsin, std::asin, std::asin>>("inverse sine"),
      OfFloats<Math<kAcos, std::acos, std::acos>>("inverse cosine"),
      OfFloats<Math<kAtan, std::atan, std::atan>>("inverse tangent"),
      OfFloats<Math<kSinh, std::sinh, std::sinh>>("hyperbolic sine"),
      OfFloats<Math<kCosh, std::cosh, std::cosh>>("hyperbolic cosine"),
      OfFloats<Math<kTanh, std::tanh, std::tanh, &VectorMath::tanh>>("hyperbolic tangent"),
      OfFloats<Math<kAsinh, std::asinh, std::asinh>>("inverse hyperbolic sine"),
      OfFloats<Math<kAcosh, std::acosh, std::acosh>>("inverse hyperbolic cosine"),
      OfFloats<Math<kAtanh, std::atanh, std::atanh>>("inverse hyperbolic tangent"),
      OfFloats<Math<kErf, std::erf, std::erf, &VectorMath::erf>>("error function"),
      Describe<BitNot>("x -> out over x", "any integer", "", "every bit inverted", kElementwise),
      Describe<Not>("x -> out over x", "bool", "", "not x", kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

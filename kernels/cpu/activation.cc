// SPDX-License-Identifier: Apache-2.0
// Activations with attributes, which a factory reads once.
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// `Op` reads its attributes in Read and computes one element in Apply.
template <typename Op>
struct Activation : Op {
  static Status Make(Attributes& attributes, Activation* activation) {
    activation->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "x", x); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto apply = this->template For<T>();
      loop.Run<T, T>(apply);
      return Status();
    });
  }
};

struct LeakyRelu {
  static constexpr const char kName[] = "rewire.leaky_relu";
  using Accepts = Floats;
  double alpha;
  void Read(Attributes& attributes) { alpha = attributes.Float("alpha", 0.01); }
  template <typename T>
  auto For() const {
    return [slope = static_cast<T>(alpha)](T x) { return x < 0 ? slope * x : x; };
  }
};

struct Elu {
  static constexpr const char kName[] = "rewire.elu";
  using Accepts = Floats;
  double alpha;
  void Read(Attributes& attributes) { alpha = attributes.Float("alpha", 1); }
  template <typename T>
  auto For() const {
    return [scale = static_cast<T>(alpha)](T x) { return x < 0 ? scale * std::expm1(x) : x; };
  }
};

struct Selu {
  static constexpr const char kName[] = "rewire.selu";
  using Accepts = Floats;
  double alpha;
  double gamma;
  void Read(Attributes& attributes) {
    alpha = attributes.Float("alpha", 1.67326319217681884765625);
    gamma = attributes.Float("gamma", 1.05070102214813232421875);
  }
  template <typename T>
  auto For() const {
    return [low = static_cast<T>(gamma * alpha), high = static_cast<T>(gamma)](T x) {
      return x < 0 ? low * std::expm1(x) : high * x;
    };
  }
};

struct Gelu {
  static constexpr const char kName[] = "rewire.gelu";
  using Accepts = Floats;
  bool tanh;
  void Read(Attributes& attributes) { tanh = attributes.Choice("approximate", {"none", "tanh"}, 0) == 1; }
  template <typename T>
  auto For() const {
    return [approximate = tanh](T x) {
      constexpr T kSqrtHalf = static_cast<T>(0.70710678118654752440);
      constexpr T kSqrtTwoOverPi = static_cast<T>(0.79788456080286535588);
      constexpr T kHalf = static_cast<T>(0.5);
      if (!approximate) return kHalf * x * (1 + std::erf(x * kSqrtHalf));
      return kHalf * x * (1 + std::tanh(kSqrtTwoOverPi * (x + static_cast<T>(0.044715) * x * x * x)));
    };
  }
};

// NaN survives: each comparison is false for it.
template <typename T>
T Clamp(T x, T low, T high) {
  return x < low ? low : high < x ? high : x;
}

struct HardSigmoid {
  static constexpr const char kName[] = "rewire.hard_sigmoid";
  using Accepts = Floats;
  double alpha;
  double beta;
  void Read(Attributes& attributes) {
    alpha = attributes.Float("alpha", 0.2);
    beta = attributes.Float("beta", 0.5);
  }
  template <typename T>
  auto For() const {
    return
        [a = static_cast<T>(alpha), b = static_cast<T>(beta)](T x) { return Clamp(a * x + b, T{0}, T{1}); };
  }
};

struct HardSwish {
  static constexpr const char kName[] = "rewire.hard_swish";
  using Accepts = Floats;
  void Read(Attributes&) {}
  template <typename T>
  auto For() const {
    return [](T x) { return x * Clamp(x / 6 + static_cast<T>(0.5), T{0}, T{1}); };
  }
};

struct Clip {
  static constexpr const char kName[] = "rewire.clip";
  using Accepts = Numbers;
  double min;
  double max;
  void Read(Attributes& attributes) {
    min = attributes.Float("min", -std::numeric_limits<double>::infinity());
    max = attributes.Float("max", std::numeric_limits<double>::infinity());
  }
  template <typename T>
  auto For() const {
    return [low = Bound<T>(min), high = Bound<T>(max)](T x) { return x < low ? low : high < x ? high : x; };
  }

 private:
  // The nearest T: an integer type's range ends before infinity.
  template <typename T>
  static T Bound(double bound) {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::is_integer) {
      if (bound <= static_cast<double>(Limits::min())) return Limits::min();
      if (bound >= static_cast<double>(Limits::max())) return Limits::max();
    }
    return static_cast<T>(bound);
  }
};

}  // namespace

std::span<const Kernel> ActivationKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Activation<LeakyRelu>>("x, out", "f32 f64", "alpha = 0.01", "x, or alpha * x below 0"),
      Describe<Activation<Elu>>("x, out", "f32 f64", "alpha = 1.0", "x, or alpha * (exp(x) - 1) below 0"),
      Describe<Activation<Selu>>("x, out", "f32 f64", "alpha = 1.6733, gamma = 1.0507", "gamma * elu(x)"),
      Describe<Activation<Gelu>>("x, out", "f32 f64", "approximate = none or tanh",
                                 "x * normal distribution function of x"),
      Describe<Activation<HardSigmoid>>("x, out", "f32 f64", "alpha = 0.2, beta = 0.5",
                                        "alpha * x + beta, held in [0, 1]"),
      Describe<Activation<HardSwish>>("x, out", "f32 f64", "", "x * (x / 6 + 0.5 held in [0, 1])"),
      Describe<Activation<Clip>>("x, out", "f32 f64 i64 i32 i8 u8", "min = -inf, max = inf",
                                 "x held in [min, max]; NaN stays"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Activations with attributes, which a factory reads once.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/math/scalar_forms.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

// `Op` reads its attributes in Read and gives the function of one element in For; Rows, if it has it, gives
// that of rows of floats.
template <typename Op>
struct ElementActivation : Op {
  static Status Make(Attributes& attributes, ElementActivation* activation) {
    activation->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    if (Status s = CheckSameDType("out", out, "x", x); !s.ok()) return s;
    return ForType(typename Op::Accepts(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<Computed<T>, float> && requires(const Op& op) { op.Rows(); })
        return loop.RunRows<T, T>(OnRowsInBlocks<T>(RowsOf<T>(*this)));
      else
        return loop.Run<T, T>(OnElementsInBlocks<T>(this->template For<Computed<T>>()));
    });
  }

 private:
  // A template of its own: clang 14 looks up this->Rows() in the lambda above for every Op.
  template <typename T, typename Activation>
  static auto RowsOf(const Activation& activation) {
    return activation.Rows();
  }
};

struct LeakyRelu {
  static constexpr const char* kName = names::kLeakyRelu;
  using Accepts = AnyFloats;
  double alpha;
  void Read(Attributes& attributes) { alpha = contract::kLeakyReluAlpha.Read(attributes); }
  template <typename T>
  auto For() const {
    return [slope = static_cast<T>(alpha)](T x) { return functions::PRelu(x, slope); };
  }
};

struct Elu {
  static constexpr const char* kName = names::kElu;
  using Accepts = AnyFloats;
  double alpha;
  void Read(Attributes& attributes) { alpha = contract::kEluAlpha.Read(attributes); }
  auto Rows() const {
    return [elu = BestVectorMath().elu, scale = static_cast<float>(alpha)](
               const float* in, float* out, std::int64_t count) { elu(in, scale, out, count); };
  }
  template <typename T>
  auto For() const {
    return [scale = static_cast<T>(alpha)](T x) { return functions::Elu(x, scale); };
  }
};

// out = below(in) where the element is less than 0, else above(in); `below` is a function of rows.
template <typename Below, typename Above>
void RunBySign(const Below& below, const Above& above, const float* in, float* out, std::int64_t count) {
  float block[256];
  for (std::int64_t at = 0; at < count; at += std::ssize(block)) {
    const std::int64_t size = std::min<std::int64_t>(count - at, std::ssize(block));
    below(in + at, block, size);
    // Both sides are computed: signs are random, and a branch would be guessed wrong for half of them.
    WideLoop([from = in + at, to = block, size, above] {
      for (std::int64_t i = 0; i < size; ++i) {
        const float x = from[i], low = to[i], high = above(x);
        to[i] = x < 0 ? low : high;
      }
    });
    std::copy_n(block, size, out + at);
  }
}

struct Selu {
  static constexpr const char* kName = names::kSelu;
  using Accepts = AnyFloats;
  double alpha;
  double gamma;
  void Read(Attributes& attributes) {
    alpha = contract::kSeluAlpha.Read(attributes);
    gamma = contract::kSeluGamma.Read(attributes);
  }
  auto Rows() const {
    return [elu = BestVectorMath().elu, low = static_cast<float>(gamma * alpha),
            high = static_cast<float>(gamma)](const float* in, float* out, std::int64_t count) {
      const auto below = [=](const float* from, float* to, std::int64_t size) { elu(from, low, to, size); };
      RunBySign(
          below, [=](float x) { return high * x; }, in, out, count);
    };
  }
  template <typename T>
  auto For() const {
    return [low = static_cast<T>(gamma * alpha), high = static_cast<T>(gamma)](T x) {
      return functions::Selu(x, low, high);
    };
  }
};

struct Gelu : contract::GeluAttributes {
  static constexpr const char* kName = names::kGelu;
  using Accepts = AnyFloats;
  VectorMath::Row Rows() const { return tanh ? BestVectorMath().gelu_tanh : BestVectorMath().gelu; }
  template <typename T>
  auto For() const {
    return [approximate = tanh](T x) { return approximate ? functions::GeluTanh(x) : functions::Gelu(x); };
  }
};

struct Celu {
  static constexpr const char* kName = names::kCelu;
  using Accepts = AnyFloats;
  double alpha;
  void Read(Attributes& attributes) { alpha = contract::kCeluAlpha.Read(attributes); }
  auto Rows() const {
    return [elu = BestVectorMath().elu, scale = static_cast<float>(alpha)](const float* in, float* out,
                                                                           std::int64_t count) {
      if (scale == 1) return elu(in, 1, out, count);
      const auto below = [=](const float* from, float* to, std::int64_t size) {
        WideLoop([=] {
          for (std::int64_t i = 0; i < size; ++i) to[i] = from[i] / scale;
        });
        // The function of rows leaves numbers that are not below 0 as they are. A scale below 0 makes such
        // numbers, and so does an infinite one, whose product with 0 is NaN.
        if (scale > 0 && scale <= std::numeric_limits<float>::max())
          elu(to, scale, to, size);
        else
          for (std::int64_t i = 0; i < size; ++i) to[i] = functions::Celu(from[i], scale);
      };
      RunBySign(
          below, [](float x) { return x; }, in, out, count);
    };
  }
  template <typename T>
  auto For() const {
    return [scale = static_cast<T>(alpha)](T x) { return functions::Celu(x, scale); };
  }
};

struct ThresholdedRelu {
  static constexpr const char* kName = names::kThresholdedRelu;
  using Accepts = AnyFloats;
  double alpha;
  void Read(Attributes& attributes) { alpha = contract::kThresholdedReluAlpha.Read(attributes); }
  template <typename T>
  auto For() const {
    return [least = static_cast<T>(alpha)](T x) { return functions::ThresholdedRelu(x, least); };
  }
};

struct Shrink {
  static constexpr const char* kName = names::kShrink;
  using Accepts = AnyFloats;
  double lambda;
  double bias;
  void Read(Attributes& attributes) {
    lambda = contract::kShrinkLambda.Read(attributes);
    bias = contract::kShrinkBias.Read(attributes);
  }
  template <typename T>
  auto For() const {
    return [limit = static_cast<T>(lambda), shift = static_cast<T>(bias)](T x) {
      return functions::Shrink(x, limit, shift);
    };
  }
};

struct Mish {
  static constexpr const char* kName = names::kMish;
  using Accepts = AnyFloats;
  void Read(Attributes&) {}
  VectorMath::Row Rows() const { return BestVectorMath().mish; }
  template <typename T>
  auto For() const {
    return [](T x) { return functions::Mish(x); };
  }
};

struct HardSigmoid {
  static constexpr const char* kName = names::kHardSigmoid;
  using Accepts = AnyFloats;
  double alpha;
  double beta;
  void Read(Attributes& attributes) {
    alpha = contract::kHardSigmoidAlpha.Read(attributes);
    beta = contract::kHardSigmoidBeta.Read(attributes);
  }
  template <typename T>
  auto For() const {
    return [a = static_cast<T>(alpha), b = static_cast<T>(beta)](T x) {
      return functions::HardSigmoid(x, a, b);
    };
  }
};

struct HardSwish {
  static constexpr const char* kName = names::kHardSwish;
  using Accepts = AnyFloats;
  void Read(Attributes&) {}
  template <typename T>
  auto For() const {
    return [](T x) { return functions::HardSwish(x); };
  }
};

struct Swish {
  static constexpr const char* kName = names::kSwish;
  using Accepts = AnyFloats;
  void Read(Attributes&) {}
  VectorMath::Row Rows() const { return BestVectorMath().swish; }
  template <typename T>
  auto For() const {
    return [](T x) { return functions::Swish(x); };
  }
};

struct Clip {
  static constexpr const char* kName = names::kClip;
  using Accepts = AnyNumbers;
  double min;
  double max;
  void Read(Attributes& attributes) {
    min = contract::kClipMin.Read(attributes);
    max = contract::kClipMax.Read(attributes);
  }
  template <typename T>
  auto For() const {
    return [low = ToType<T>(min), high = ToType<T>(max)](T x) { return functions::Clip(x, low, high); };
  }
};

}  // namespace

std::span<const Kernel> ActivationKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ElementActivation<LeakyRelu>>("x -> out over x", "any float", "alpha = 0.01",
                                             "x, or alpha * x below 0", kElementwise),
      Describe<ElementActivation<Elu>>("x -> out over x", "any float", "alpha = 1.0",
                                       "x, or alpha * (exp(x) - 1) below 0", kElementwise),
      Describe<ElementActivation<Selu>>("x -> out over x", "any float", "alpha = 1.6733, gamma = 1.0507",
                                        "gamma * elu(x)", kElementwise),
      Describe<ElementActivation<Gelu>>("x -> out over x", "any float", "approximate = none or tanh",
                                        "x * normal distribution function of x", kElementwise),
      Describe<ElementActivation<Celu>>("x -> out over x", "any float", "alpha = 1.0",
                                        "x, or alpha * (exp(x / alpha) - 1) below 0", kElementwise),
      Describe<ElementActivation<ThresholdedRelu>>("x -> out over x", "any float", "alpha = 1.0",
                                                   "x above alpha, else 0", kElementwise),
      Describe<ElementActivation<Shrink>>(
          "x -> out over x", "any float", "lambd = 0.5, bias = 0.0",
          "x with its magnitude less bias, or 0 where that is at most lambd, or NaN", kElementwise),
      Describe<ElementActivation<Mish>>("x -> out over x", "any float", "", "x * tanh(log(1 + exp(x)))",
                                        kElementwise),
      Describe<ElementActivation<HardSigmoid>>("x -> out over x", "any float", "alpha = 0.2, beta = 0.5",
                                               "alpha * x + beta, held in [0, 1]", kElementwise),
      Describe<ElementActivation<Swish>>("x -> out over x", "any float", "", "x / (1 + exp(-x))",
                                         kElementwise),
      Describe<ElementActivation<HardSwish>>("x -> out over x", "any float", "",
                                             "x * (x * (1 / 6) + 0.5 held in [0, 1])", kElementwise),
      Describe<ElementActivation<Clip>>(
          "x -> out over x", "any number", "min = -inf, max = inf",
          "min(max, max(min, x)): max where min is above it. NaN stays, and a bound that is NaN is none",
          kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Normalisation by mean and variance.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckShaped(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
  if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
  return checks.Take();
}

Status CheckParameter(const char* name, TensorView parameter, ShapeView shape, TensorView x, TensorView out) {
  Checks checks;
  checks.Dense(name, parameter).SameDType(name, parameter, "x", x).Shape(name, parameter, shape);
  return checks.NoOverlap("out", out, name, parameter).Take();
}

struct LayerNorm {
  static constexpr const char kName[] = "rewire.layer_norm";
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  static Status Make(Attributes& attributes, LayerNorm* norm) {
    norm->axis = attributes.Int("axis", -1);
    norm->epsilon = attributes.Float("epsilon", 1e-5);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> bias, TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    int first = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &first); !s.ok()) return s;
    const ShapeView inside(x.dims().data() + first, static_cast<std::size_t>(x.ndim() - first));
    if (Status s = CheckParameter("scale", scale, inside, x, out); !s.ok()) return s;
    if (bias) {
      if (Status s = CheckParameter("bias", *bias, inside, x, out); !s.ok()) return s;
    }
    if (x.size() == 0) return Status();
    const std::int64_t count = Product(x.dims(), first, x.ndim());
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* shift = bias ? bias->data<T>() : nullptr;
      ParallelFor(x.size() / count, std::max<std::int64_t>(1, kGrain / count),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      Row(x.data<T>() + i * count, scale.data<T>(), shift, out.data<T>() + i * count, count);
                    }
                  });
      return Status();
    });
  }

 private:
  // Two passes: the variance of large values with a small spread would drown in a sum of squares.
  template <typename T>
  void Row(const T* in, const T* scale, const T* bias, T* out, std::int64_t count) const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(in[i]);
    const double mean = sum / static_cast<double>(count);
    double squares = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double distance = static_cast<double>(in[i]) - mean;
      squares += distance * distance;
    }
    const auto factor = static_cast<T>(1 / std::sqrt(squares / static_cast<double>(count) + epsilon));
    const auto center = static_cast<T>(mean);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = (in[i] - center) * factor * scale[i] + (bias != nullptr ? bias[i] : T{0});
    }
  }
};

struct BatchNorm {
  static constexpr const char kName[] = "rewire.batch_norm";
  double epsilon = 1e-5;
  static Status Make(Attributes& attributes, BatchNorm* norm) {
    norm->epsilon = attributes.Float("epsilon", 1e-5);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, TensorView bias, TensorView mean, TensorView variance,
                    TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    const std::int64_t channels = x.dim(1);
    const ShapeView shape(&channels, 1);
    const std::pair<const char*, TensorView> parameters[] = {
        {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}};
    for (const auto& [name, parameter] : parameters) {
      if (Status s = CheckParameter(name, parameter, shape, x, out); !s.ok()) return s;
    }
    if (x.size() == 0) return Status();
    const std::int64_t plane = Product(x.dims(), 2, x.ndim());
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ParallelFor(x.dim(0) * channels, std::max<std::int64_t>(1, kGrain / plane),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t c = i % channels;
                      const T spread = std::sqrt(variance.data<T>()[c] + static_cast<T>(epsilon));
                      const T factor = scale.data<T>()[c] / spread;
                      const T center = mean.data<T>()[c];
                      const T shift = bias.data<T>()[c];
                      const T* from = x.data<T>() + i * plane;
                      T* to = out.data<T>() + i * plane;
                      for (std::int64_t j = 0; j < plane; ++j) to[j] = (from[j] - center) * factor + shift;
                    }
                  });
      return Status();
    });
  }
};

}  // namespace

std::span<const Kernel> NormalizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LayerNorm>(
          "x, scale, bias?, out", "f32 f64", "axis = -1, epsilon = 1e-5",
          "x less its mean, over its standard deviation, of the dimensions from the axis on; times "
          "scale, plus bias, both of these dimensions"),
      Describe<BatchNorm>(
          "x, scale, bias, mean, variance, out", "f32 f64", "epsilon = 1e-5",
          "(x - mean) / sqrt(variance + epsilon) * scale + bias for x [N, C, ...], the others [C]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

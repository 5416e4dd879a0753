// SPDX-License-Identifier: Apache-2.0
// Normalization by mean and variance.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/cpu/normalization/group_norm.h"
#include "rewire/kernels/cpu/normalization/spread.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct LayerNorm : contract::RowNormAttributes {
  static constexpr const char* kName = names::kLayerNorm;
  static Status Make(Attributes& attributes, LayerNorm* norm) {
    norm->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, std::optional<TensorView> bias, TensorView out,
                    std::optional<TensorView> out_mean, std::optional<TensorView> out_inv_std) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    int first = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &first); !s.ok()) return s;
    const ShapeView inside(x.dims().data() + first, static_cast<std::size_t>(x.ndim() - first));
    if (Status s = CheckParameter("scale", scale, inside, x, out); !s.ok()) return s;
    if (IsGiven(bias)) {
      if (Status s = CheckParameter("bias", *bias, inside, x, out); !s.ok()) return s;
    }
    Dims outside(x.dims());
    for (int i = first; i < x.ndim(); ++i) outside[i] = 1;
    if (out_mean) {
      if (Status s = CheckParameter("out_mean", *out_mean, outside.view(), x, out); !s.ok()) return s;
    }
    if (out_inv_std) {
      if (Status s = CheckParameter("out_inv_std", *out_inv_std, outside.view(), x, out); !s.ok()) return s;
    }
    if (x.size() == 0) return Status();
    const std::int64_t count = Product(x.dims(), first, x.ndim());
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* shift = IsGiven(bias) ? bias->data<T>() : nullptr;
      T* means = out_mean ? out_mean->data<T>() : nullptr;
      T* factors = out_inv_std ? out_inv_std->data<T>() : nullptr;
      const RowFunctions<T> rows = ChooseRowFunctions<T>();
      return ParallelFor(x.size() / count, GrainOf(kGrain, count),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const T* in = x.data<T>() + i * count;
                             T* to = out.data<T>() + i * count;
                             const Spread<T> spread = SpreadOf(rows, in, count, epsilon, pace);
                             const bool done = pace.For(count, 1, [&](std::int64_t first, std::int64_t last) {
                               rows.scale_each(in + first, last - first, spread.center, spread.factor,
                                               scale.data<T>() + first,
                                               shift == nullptr ? nullptr : shift + first, to + first);
                             });
                             if (!done) return;
                             if (means != nullptr) means[i] = spread.center;
                             if (factors != nullptr) factors[i] = spread.factor;
                           }
                         });
    });
  }
};

struct RmsNorm : contract::RowNormAttributes {
  static constexpr const char* kName = names::kRmsNorm;
  static Status Make(Attributes& attributes, RmsNorm* norm) {
    norm->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    int first = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &first); !s.ok()) return s;
    const ShapeView inside(x.dims().data() + first, static_cast<std::size_t>(x.ndim() - first));
    if (Status s = CheckParameter("scale", scale, inside, x, out); !s.ok()) return s;
    if (x.size() == 0) return Status();
    const std::int64_t count = Product(x.dims(), first, x.ndim());
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* factors = scale.data<T>();
      const RowFunctions<T> rows = ChooseRowFunctions<T>();
      return ParallelFor(
          x.size() / count, GrainOf(kGrain, count), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
            for (std::int64_t i = begin; i < end; ++i) {
              const T* in = x.data<T>() + i * count;
              T* to = out.data<T>() + i * count;
              const double mean = MomentsOf(rows, in, count, 0, pace).squares / static_cast<double>(count);
              const T inverse = static_cast<T>(1 / std::sqrt(mean + epsilon));
              const auto scaled = [&](std::int64_t from, std::int64_t last) {
                rows.scale_each(in + from, last - from, T{0}, inverse, factors + from, nullptr, to + from);
              };
              if (!pace.For(count, 1, scaled)) return;
            }
          });
    });
  }
};

struct LocalResponseNorm {
  static constexpr const char* kName = names::kLrn;
  std::int64_t size = 1;
  double alpha = 1e-4;
  double beta = 0.75;
  double bias = 1;
  static Status Make(Attributes& attributes, LocalResponseNorm* norm) {
    attributes.Require("size");
    norm->size = attributes.Int("size", 1, 1);
    norm->alpha = attributes.Float("alpha", 1e-4);
    norm->beta = attributes.Float("beta", 0.75);
    norm->bias = attributes.Float("bias", 1);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    if (Status s = CheckNoOverlap("out", out, "x", x); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    if (x.size() == 0) return Status();
    const std::int64_t channels = x.dim(1);
    const std::int64_t plane = Product(x.dims(), 2, x.ndim());
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ParallelFor(Times(x.dim(0), channels), GrainOf(kGrain, plane, 16),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const std::int64_t c = i % channels;
                             const std::int64_t first = std::max<std::int64_t>(0, c - (size - 1) / 2) - c;
                             const std::int64_t last = std::min(channels - 1, Plus(c, size / 2)) - c;
                             const T* from = x.data<T>() + i * plane;
                             T* to = out.data<T>() + i * plane;
                             for (std::int64_t j = 0; j < plane; ++j) {
                               if (!pace.Spend(16 + last - first)) return;
                               T squares = 0;
                               for (std::int64_t k = first; k <= last; ++k) {
                                 const T value = from[k * plane + j];
                                 squares += value * value;
                               }
                               const T base = static_cast<T>(bias) +
                                              static_cast<T>(alpha / static_cast<double>(size)) * squares;
                               to[j] = from[j] / std::pow(base, static_cast<T>(beta));
                             }
                           }
                         });
    });
  }
};

struct BatchNorm : contract::BatchNormAttributes {
  static constexpr const char* kName = names::kBatchNorm;
  static Status Make(Attributes& attributes, BatchNorm* norm) {
    norm->Read(attributes);
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
      const RowFunctions<T> rows = ChooseRowFunctions<T>();
      return ParallelFor(Times(x.dim(0), channels), GrainOf(kGrain, plane),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const std::int64_t c = i % channels;
                             const T spread = std::sqrt(variance.data<T>()[c] + static_cast<T>(epsilon));
                             const T factor = scale.data<T>()[c] / spread;
                             const T center = mean.data<T>()[c];
                             const T shift = bias.data<T>()[c];
                             const T* from = x.data<T>() + i * plane;
                             T* to = out.data<T>() + i * plane;
                             const auto shifted = [&](std::int64_t first, std::int64_t last) {
                               rows.scale(from + first, last - first, center, factor, shift, to + first);
                             };
                             if (!pace.For(plane, 1, shifted)) return;
                           }
                         });
    });
  }
};

}  // namespace

std::span<const Kernel> NormalizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LayerNorm>(
          "x, scale, bias? -> out over x, out_mean?, out_inv_std?", "f32 f64", "axis = -1, epsilon = 1e-5",
          "x less its mean, over its standard deviation, of the dimensions from the axis on; times "
          "scale, plus bias, both of these dimensions; the means and inverse deviations on demand, their "
          "reduced dimensions 1"),
      Describe<RmsNorm>(
          "x, scale -> out over x", "f32 f64", "axis = -1, epsilon = 1e-5",
          "x over the root of its mean square, of the dimensions from the axis on; times scale of "
          "these dimensions"),
      Describe<GroupNorm>(
          "x, scale, bias -> out over x", "f32 f64",
          "num_groups = 0 (as many as channels), epsilon = 1e-5, layout = NCHW or NHWC",
          "x [N, C, ...] less its mean, over its standard deviation, of each group of channels; "
          "times scale, plus bias, both [C] or [num_groups]; instance normalization by default",
          kLayout),
      Describe<LocalResponseNorm>(
          "x -> out", "f32 f64", "size, alpha = 1e-4, beta = 0.75, bias = 1.0",
          "x [N, C, ...] over (bias + alpha / size * the sum of squares of size channels "
          "around)^beta"),
      Describe<BatchNorm>(
          "x, scale, bias, mean, variance -> out over x", "f32 f64", "epsilon = 1e-5",
          "(x - mean) / sqrt(variance + epsilon) * scale + bias for x [N, C, ...], the others [C]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

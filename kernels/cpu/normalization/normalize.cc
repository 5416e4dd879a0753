// SPDX-License-Identifier: Apache-2.0
// Normalisation by mean and variance.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

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

// A mean and the inverse of a standard deviation.
template <typename T>
struct Spread {
  T center;
  T factor;
};

// The sum of term(in[i]). In lanes, since one sum would wait for each addition.
template <typename T, typename Term>
double SumOf(const T* in, std::int64_t count, Pace& pace, const Term& term) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  const bool done = pace.For(count, 1, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += term(static_cast<double>(in[i + l]));
    }
    for (; i < end; ++i) lanes[0] += term(static_cast<double>(in[i]));
  });
  if (!done) return 0;
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Two passes: the variance of large values with a small spread would drown in a sum of squares.
template <typename T>
Spread<T> SpreadOf(const T* in, std::int64_t count, double epsilon, Pace& pace) {
  const double mean = SumOf(in, count, pace, [](double value) { return value; }) / static_cast<double>(count);
  const double squares =
      SumOf(in, count, pace, [=](double value) { return (value - mean) * (value - mean); });
  const double variance = squares / static_cast<double>(count);
  return {static_cast<T>(mean), static_cast<T>(1 / std::sqrt(variance + epsilon))};
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
      return ParallelFor(x.size() / count, GrainOf(kGrain, count),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const T* in = x.data<T>() + i * count;
                             T* to = out.data<T>() + i * count;
                             const Spread<T> spread = SpreadOf(in, count, epsilon, pace);
                             const bool done = pace.For(count, 1, [&](std::int64_t first, std::int64_t last) {
                               Row(in + first, spread, scale.data<T>() + first,
                                   shift == nullptr ? nullptr : shift + first, to + first, last - first);
                             });
                             if (!done) return;
                             if (means != nullptr) means[i] = spread.center;
                             if (factors != nullptr) factors[i] = spread.factor;
                           }
                         });
    });
  }

 private:
  template <typename T>
  static void Row(const T* in, const Spread<T>& spread, const T* scale, const T* bias, T* out,
                  std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = (in[i] - spread.center) * spread.factor * scale[i] + (bias != nullptr ? bias[i] : T{0});
    }
  }
};

struct RmsNorm {
  static constexpr const char kName[] = "rewire.rms_norm";
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  static Status Make(Attributes& attributes, RmsNorm* norm) {
    norm->axis = attributes.Int("axis", -1);
    norm->epsilon = attributes.Float("epsilon", 1e-5);
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
      return ParallelFor(
          x.size() / count, GrainOf(kGrain, count), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
            for (std::int64_t i = begin; i < end; ++i) {
              const T* in = x.data<T>() + i * count;
              T* to = out.data<T>() + i * count;
              const double squares = SumOf(in, count, pace, [](double value) { return value * value; });
              const double mean = squares / static_cast<double>(count);
              const T inverse = static_cast<T>(1 / std::sqrt(mean + epsilon));
              const auto scaled = [&](std::int64_t from, std::int64_t last) {
                for (std::int64_t j = from; j < last; ++j) to[j] = in[j] * inverse * factors[j];
              };
              if (!pace.For(count, 1, scaled)) return;
            }
          });
    });
  }
};

struct GroupNorm {
  static constexpr const char kName[] = "rewire.group_norm";
  std::int64_t groups = 0;
  double epsilon = 1e-5;
  static Status Make(Attributes& attributes, GroupNorm* norm) {
    norm->groups = attributes.Int("num_groups", 0, 0);
    norm->epsilon = attributes.Float("epsilon", 1e-5);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, TensorView bias, TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected [N, C, ...]");
    const std::int64_t channels = x.dim(1);
    const std::int64_t parts = groups == 0 ? channels : groups;
    if (parts != 0 && channels % parts != 0)
      return ValueError("x has shape ", x.dims(), ": ", channels, " channels are no multiple of ", parts,
                        " groups");
    // One scale and bias for each channel, or for each group.
    const std::int64_t parameters = scale.ndim() == 1 && scale.dim(0) == parts ? parts : channels;
    if (Status s = CheckParameter("scale", scale, ShapeView(&parameters, 1), x, out); !s.ok()) return s;
    if (Status s = CheckParameter("bias", bias, ShapeView(&parameters, 1), x, out); !s.ok()) return s;
    if (x.size() == 0 || parts == 0) return Status();
    const std::int64_t plane = Product(x.dims(), 2, x.ndim());
    const std::int64_t part_channels = channels / parts;
    const std::int64_t count = part_channels * plane;
    const std::int64_t per_parameter = channels / parameters;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ParallelFor(Times(x.dim(0), parts), GrainOf(kGrain, count),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const Spread<T> spread = SpreadOf(x.data<T>() + i * count, count, epsilon, pace);
                             for (std::int64_t c = 0; c < part_channels; ++c) {
                               const std::int64_t channel = i % parts * part_channels + c;
                               const T factor = spread.factor * scale.data<T>()[channel / per_parameter];
                               const T shift = bias.data<T>()[channel / per_parameter];
                               const T* from = x.data<T>() + i * count + c * plane;
                               T* to = out.data<T>() + i * count + c * plane;
                               const auto shifted = [&](std::int64_t first, std::int64_t last) {
                                 for (std::int64_t j = first; j < last; ++j)
                                   to[j] = (from[j] - spread.center) * factor + shift;
                               };
                               if (!pace.For(plane, 1, shifted)) return;
                             }
                           }
                         });
    });
  }
};

struct LocalResponseNorm {
  static constexpr const char kName[] = "rewire.lrn";
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
                               for (std::int64_t j = first; j < last; ++j)
                                 to[j] = (from[j] - center) * factor + shift;
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
          "x, scale, bias -> out over x", "f32 f64", "num_groups = 0 (as many as channels), epsilon = 1e-5",
          "x [N, C, ...] less its mean, over its standard deviation, of each group of channels; "
          "times scale, plus bias, both [C] or [num_groups]; instance normalisation by default"),
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

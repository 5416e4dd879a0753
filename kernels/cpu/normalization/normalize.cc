// SPDX-License-Identifier: Apache-2.0
// Normalization by mean and variance.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/cpu/math/pair_math.h"
#include "rewire/kernels/cpu/normalization/group_norm.h"
#include "rewire/kernels/cpu/normalization/spread.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

constexpr std::int64_t kRowWork = 16;  // of a row, beside that of its elements

// Normalizes rows of `count` elements. Rows that are longer than a host waits for go in pieces.
template <typename T>
Status NormalizeEach(TensorView x, std::int64_t count, const RowNorm<T>& by, TensorView out) {
  const T* in = x.data<T>();
  T* to = out.data<T>();
  const RowFunctions<T> rows = ChooseRowFunctions<T>();
  const auto long_row = [=](std::int64_t row, Pace& pace) {
    const T* from = in + row * count;
    const double shift = by.ShiftOf(from);
    const Spread<T> spread = by.SpreadOfRow(MomentsOf(rows, from, count, shift, pace), count, shift);
    const auto scale = [&](std::int64_t first, std::int64_t last) {
      rows.scale_each(from + first, last - first, spread.center, spread.factor, by.scales + first,
                      by.biases == nullptr ? nullptr : by.biases + first, to + row * count + first);
    };
    if (!pace.For(count, 1, scale)) return false;
    by.Keep(row, spread);
    return true;
  };
  return ParallelFor(x.size() / count, GrainOf(kGrain, count),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       if (count > kPace / 2) {
                         while (begin < end && long_row(begin, pace)) ++begin;
                         return;
                       }
                       const auto normalize = [&](std::int64_t first, std::int64_t last) {
                         rows.normalize(in, begin + first, begin + last, count, by, to);
                       };
                       static_cast<void>(pace.For(end - begin, Plus(kRowWork, 2 * count), normalize));
                     });
}

struct LayerNorm : WithAttributes<contract::RowNormAttributes> {
  static constexpr const char* kName = names::kLayerNorm;
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
    const auto outside = contract::StatisticsSizes<Dims>(x.dims(), first);
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
      return NormalizeEach<T>(
          x, count,
          {true, epsilon, scale.data<T>(), IsGiven(bias) ? bias->data<T>() : nullptr,
           out_mean ? out_mean->data<T>() : nullptr, out_inv_std ? out_inv_std->data<T>() : nullptr},
          out);
    });
  }
};

struct RmsNorm : WithAttributes<contract::RowNormAttributes> {
  static constexpr const char* kName = names::kRmsNorm;
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
      return NormalizeEach<T>(x, count, {false, epsilon, scale.data<T>(), nullptr, nullptr, nullptr}, out);
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
                             const auto divide = [&](std::int64_t j, std::int64_t end_of_piece) {
                               for (; j < end_of_piece; j += kBlock) {
                                 const std::int64_t count = std::min(kBlock, end_of_piece - j);
                                 Divide(from + j, plane, first, last, count, to + j);
                               }
                             };
                             if (!pace.For(plane, 16 + last - first, divide)) return;
                           }
                         });
    });
  }

 private:
  static constexpr std::int64_t kBlock = 256;

  // `count` elements of a channel, by those of the channels from `first` to `last` beside it.
  template <typename T>
  void Divide(const T* from, std::int64_t plane, std::int64_t first, std::int64_t last, std::int64_t count,
              T* to) const {
    T bases[kBlock] = {};
    WideLoop([=, squares = bases, low = static_cast<T>(bias),
              factor = static_cast<T>(alpha / static_cast<double>(size))] {
      for (std::int64_t k = first; k <= last; ++k) {
        const T* row = from + k * plane;
        for (std::int64_t j = 0; j < count; ++j) squares[j] += row[j] * row[j];
      }
      for (std::int64_t j = 0; j < count; ++j) squares[j] = low + factor * squares[j];
    });
    // The exponents that models have are roots.
    if (beta == 0.75) {
      WideLoop([=, base = bases] {
        for (std::int64_t j = 0; j < count; ++j) {
          const T root = std::sqrt(base[j]);
          to[j] = from[j] / (root * std::sqrt(root));
        }
      });
    } else if (beta == 0.5) {
      WideLoop([=, base = bases] {
        for (std::int64_t j = 0; j < count; ++j) to[j] = from[j] / std::sqrt(base[j]);
      });
    } else {
      Raise(bases, count);
      for (std::int64_t j = 0; j < count; ++j) to[j] = from[j] / bases[j];
    }
  }

  void Raise(float* bases, std::int64_t count) const {
    float exponents[kBlock];
    std::fill_n(exponents, count, static_cast<float>(beta));
    BestPairMath().pow(bases, exponents, bases, count);
  }
  void Raise(double* bases, std::int64_t count) const {
    for (std::int64_t j = 0; j < count; ++j) bases[j] = std::pow(bases[j], beta);
  }
};

struct BatchNorm : WithAttributes<contract::BatchNormAttributes> {
  static constexpr const char* kName = names::kBatchNorm;
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
      const auto factor_of = [&](std::int64_t c) {
        return scale.data<T>()[c] / std::sqrt(variance.data<T>()[c] + static_cast<T>(epsilon));
      };
      if (plane <= kShortPlane)
        return RunShortPlanes(rows, x, plane, factor_of, mean.data<T>(), bias.data<T>(), out);
      return ParallelFor(Times(x.dim(0), channels), GrainOf(kGrain, plane),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const std::int64_t c = i % channels;
                             const T factor = factor_of(c);
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

 private:
  static constexpr std::int64_t kShortPlane = 32;

  // Planes of few elements, several channels at a time. What each element needs is written out once for all
  // images.
  template <typename T, typename FactorOf>
  Status RunShortPlanes(const RowFunctions<T>& rows, TensorView x, std::int64_t plane,
                        const FactorOf& factor_of, const T* means, const T* biases, TensorView out) const {
    constexpr std::int64_t kElements = 512;
    const std::int64_t channels = x.dim(1), images = x.dim(0);
    const std::int64_t at_once = std::min(channels, kElements / plane);
    const std::int64_t groups = (channels + at_once - 1) / at_once;
    return ParallelFor(Times(groups, images), GrainOf(kGrain, at_once, plane),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         T centers[kElements], factors[kElements], shifts[kElements];
                         std::int64_t written = -1;
                         for (std::int64_t i = begin; i < end; ++i) {
                           const std::int64_t group = i / images, first = group * at_once;
                           const std::int64_t count = std::min(at_once, channels - first);
                           if (!pace.Spend(2 * count * plane)) return;
                           for (std::int64_t c = 0; group != written && c < count; ++c) {
                             std::fill_n(centers + c * plane, plane, means[first + c]);
                             std::fill_n(factors + c * plane, plane, factor_of(first + c));
                             std::fill_n(shifts + c * plane, plane, biases[first + c]);
                           }
                           written = group;
                           const std::int64_t at = (i % images * channels + first) * plane;
                           rows.scale_columns(x.data<T>() + at, count * plane, centers, factors, shifts,
                                              out.data<T>() + at);
                         }
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

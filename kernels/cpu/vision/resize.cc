// SPDX-License-Identifier: Apache-2.0
//
// Resizes tensors along any of their axes, one axis after another.
//
// The filters are separable. Each axis whose size changes is one pass over the tensor, from [outer, axis,
// inner] to [outer, new axis, inner], with a small list of taps for each output position.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/vision/resample.h"

namespace rewire::kernel::cpu {
namespace {

using ResizeTypes = Types<float, double, std::uint8_t, std::int8_t, std::int32_t, BFloat16>;

// The taps of one axis after the other, for all its output positions.
struct Plan {
  Taps* taps = nullptr;
  double* weights = nullptr;  // most_taps for each position
  std::int64_t most_taps = 0;

  Status Reserve(const ResizeAttributes& attributes, const ResizeAxis* axes, int count) {
    std::int64_t positions = 1, most_weights = 1;
    for (int i = 0; i < count; ++i) {
      positions = std::max(positions, axes[i].output);
      // At least what is declared: how much memory a run takes is known before it.
      most_weights = std::max({most_weights, Times(axes[i].output, axes[i].MostTaps(attributes)),
                               ResizeAxis::MostWeights(attributes, axes[i].input, axes[i].output)});
    }
    if (Status s = Workspace(positions, &taps); !s.ok()) return s;
    return Workspace(most_weights, &weights);
  }
  // The same for lengths that are known from a file, with whatever scales they have come about.
  static void Declare(const ResizeAttributes& attributes, const DLTensor* x, const DLTensor* out,
                      WorkspaceSizes& sizes) {
    std::int64_t positions = 1, most_weights = 1;
    for (std::int32_t i = 0; i < out->ndim; ++i) {
      positions = std::max(positions, out->shape[i]);
      most_weights = std::max(most_weights, ResizeAxis::MostWeights(attributes, x->shape[i], out->shape[i]));
    }
    sizes.Take(positions, sizeof(Taps));
    sizes.Take(most_weights, sizeof(double));
  }
  Status Make(const ResizeAttributes& attributes, const ResizeAxis& axis) {
    most_taps = axis.MostTaps(attributes);
    Pace pace;
    for (std::int64_t o = 0; o < axis.output; ++o) {
      taps[o] = axis.At(attributes, o, weights + o * most_taps, pace);
      if (!pace.Spend(8)) return Stopped();
    }
    return Status();
  }
};

struct Resize {
  static constexpr const char kName[] = "rewire.resize";
  ResizeAttributes attributes;
  static Status Make(Attributes& given, Resize* resize) {
    resize->attributes.Read(given);
    return Status();
  }

  Status operator()(TensorView x, std::optional<TensorView> roi, std::optional<TensorView> scales,
                    TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).Rank("out", out, x.ndim());
    if (Status s = checks.NoOverlap("out", out, "x", x).Take(); !s.ok()) return s;
    if (x.ndim() == 0) return ValueError("x has rank 0, expected 1 or more");
    ResizeAxis axes[kMaxKernelRank];
    if (Status s = ResolveAxes(x, roi, scales, out, axes); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (x.size() == 0) return ValueError("x has shape ", x.dims(), ": nothing to resize to ", out.dims());
    return ForType(ResizeTypes(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      // A float holds every number of one byte, of bf16 or of 32-bit floats.
      using Number = std::conditional_t<sizeof(T) == 1 || std::is_same_v<Computed<T>, float>, float, double>;
      if (Copies()) return CopyNearest<T>(x, axes, out);
      return Run<T, Number>(x, axes, out);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *out = sizes.Tensor(-1);
    if (x == nullptr || out == nullptr || x->ndim != out->ndim) return false;
    std::int64_t positions = 0;
    for (std::int32_t i = 0; i < out->ndim; ++i) positions += Times(1, out->shape[i]);
    if (Copies()) {
      sizes.Take(positions, sizeof(std::int64_t));
      return true;
    }
    std::int64_t most = SizeOf(x);
    for (std::int32_t i = 1; i <= x->ndim; ++i) {
      std::int64_t size = SizeFrom(x, i);
      for (std::int32_t k = 0; k < i; ++k) size = Times(size, out->shape[k]);
      most = std::max(most, size);
    }
    const bool halves = x->dtype.bits == 8 || SameDType(x->dtype, DTypeOf<BFloat16>()) ||
                        (x->dtype.code == kDLFloat && x->dtype.bits == 32);
    for (int i = 0; i < 2; ++i) sizes.Take(most, halves ? sizeof(float) : sizeof(double));
    Plan::Declare(attributes, x, out, sizes);
    return true;
  }

 private:
  // Each element is one of x.
  bool Copies() const {
    return attributes.mode == Interpolation::kNearest &&
           attributes.coordinates != Coordinates::kTfCropAndResize;
  }

  Status ResolveAxes(TensorView x, const std::optional<TensorView>& roi,
                     const std::optional<TensorView>& scales, TensorView out,
                     ResizeAxis (&axes)[kMaxKernelRank]) const {
    const int rank = x.ndim();
    for (int i = 0; i < rank; ++i) {
      axes[i].input = x.dim(i);
      axes[i].output = out.dim(i);
      axes[i].scale = x.dim(i) == 0 ? 1 : static_cast<double>(out.dim(i)) / static_cast<double>(x.dim(i));
    }
    bool marked[kMaxKernelRank];
    const ShapeView named(attributes.axes.data(), attributes.axes.size());
    if (Status s = MarkAxes(named, rank, marked); !s.ok()) return s;
    const int count = named.empty() ? rank : static_cast<int>(named.size());
    const auto axis_of = [&](int i) {
      const std::int64_t axis = named.empty() ? i : named[static_cast<std::size_t>(i)];
      return static_cast<int>(axis < 0 ? axis + rank : axis);
    };
    if (attributes.rounds && !IsGiven(scales)) {
      return ValueError("scales are missing, which keep_aspect_ratio_policy asks for");
    }
    if (IsGiven(scales)) {
      Dims expected;
      if (Status s = ResizedByScales(attributes, x.dims(), *scales, &expected); !s.ok()) return s;
      if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
      for (int i = 0; i < count; ++i) axes[axis_of(i)].scale = ScaleAt(*scales, i);
    }
    if (attributes.coordinates != Coordinates::kTfCropAndResize) return Status();
    const std::int64_t bounds = 2 * count;
    if (!IsGiven(roi)) return ValueError("roi is missing, which tf_crop_and_resize asks for");
    if (Status s = Checks().Dense("roi", *roi).Shape("roi", *roi, ShapeView(&bounds, 1)).Take(); !s.ok())
      return s;
    return ForType(Floats(), "roi", *roi, [&](auto tag) {
      const auto* region = roi->data<typename decltype(tag)::type>();
      for (int i = 0; i < count; ++i) {
        axes[axis_of(i)].roi_begin = static_cast<double>(region[i]);
        axes[axis_of(i)].roi_end = static_cast<double>(region[i + count]);
        if (!(std::fabs(axes[axis_of(i)].roi_begin) < 1e6 && std::fabs(axes[axis_of(i)].roi_end) < 1e6))
          return ValueError("roi of axis ", axis_of(i), " is no region");
      }
      return Status();
    });
  }

  // Runs of `inner` elements at the positions `source` of a line, one behind the other.
  template <typename T>
  static bool CopyLine(const T* from, const std::int64_t* source, std::int64_t count, std::int64_t inner,
                       T* to, Pace& pace) {
    if (inner == 1) {
      return pace.For(count, 1, [&](std::int64_t o, std::int64_t end) {
        for (; o < end; ++o) to[o] = from[source[o]];
      });
    }
    for (std::int64_t o = 0; o < count; ++o) {
      const T* run = from + source[o];
      const auto copy = [&](std::int64_t first, std::int64_t end) {
        std::copy(run + first, run + end, to + o * inner + first);
      };
      if (!pace.For(inner, 1, copy)) return false;
    }
    return true;
  }

  // Each element is another one: rows of the axes behind the last one that is resized are copied.
  template <typename T>
  Status CopyNearest(TensorView x, const ResizeAxis (&axes)[kMaxKernelRank], TensorView out) const {
    const int rank = x.ndim();
    int last = rank - 1;
    while (last > 0 && axes[last].IsIdentity(attributes)) --last;
    const std::int64_t inner = Product(x.dims(), last + 1, rank);
    const std::int64_t* sources[kMaxKernelRank];
    std::int64_t positions = 0;  // of all axes, as is declared
    for (int i = 0; i < rank; ++i) positions = Plus(positions, axes[i].output);
    std::int64_t* source = nullptr;
    if (Status s = Workspace(positions, &source); !s.ok()) return s;
    Pace pace;
    std::int64_t step = inner;
    for (int i = last; i >= 0; --i) {
      for (std::int64_t o = 0; o < axes[i].output; ++o) {
        if (!pace.Spend(8)) return Stopped();
        double weight = 0;
        const std::int64_t at =
            axes[i].IsIdentity(attributes) ? o : axes[i].At(attributes, o, &weight, pace).first;
        source[o] = std::clamp<std::int64_t>(at, 0, axes[i].input - 1) * step;
      }
      sources[i] = source;
      source += axes[i].output;
      step *= axes[i].input;
    }
    const std::int64_t count = axes[last].output;
    const std::int64_t rows = Product(out.dims(), 0, last);
    return ParallelFor(
        rows, GrainOf(kGrain, count, inner), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* from = x.data<T>();
            std::int64_t rest = row;
            for (int i = last - 1; i >= 0; --i) {
              from += sources[i][rest % axes[i].output];
              rest /= axes[i].output;
            }
            if (!CopyLine(from, sources[last], count, inner, out.data<T>() + row * count * inner, pace))
              return;
          }
        });
  }

  // Passes between two buffers. Numbers in between are not rounded to T.
  template <typename T, typename Number>
  Status Run(TensorView x, const ResizeAxis (&axes)[kMaxKernelRank], TensorView out) const {
    Dims now(x.dims());
    std::int64_t most = x.size();
    for (int i = 0; i < x.ndim(); ++i) {
      now[i] = axes[i].output;
      most = std::max(most, Product(now.view(), 0, now.rank()));
    }
    Number* from = nullptr;
    Number* to = nullptr;
    if (Status s = Workspace(most, &from); !s.ok()) return s;
    if (Status s = Workspace(most, &to); !s.ok()) return s;
    const T* in = x.data<T>();
    Status loaded = SerialFor(x.size(), 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) from[i] = static_cast<Number>(in[i]);
    });
    if (!loaded.ok()) return loaded;
    now = Dims(x.dims());
    Plan plan;
    if (Status s = plan.Reserve(attributes, axes, x.ndim()); !s.ok()) return s;
    for (int i = 0; i < x.ndim(); ++i) {
      if (axes[i].IsIdentity(attributes)) continue;
      if (Status s = plan.Make(attributes, axes[i]); !s.ok()) return s;
      Status s =
          Pass(axes[i], plan, Product(now.view(), 0, i), Product(now.view(), i + 1, now.rank()), from, to);
      if (!s.ok()) return s;
      now[i] = axes[i].output;
      std::swap(from, to);
    }
    T* result = out.data<T>();
    return SerialFor(out.size(), 1, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        if constexpr (std::is_integral_v<T>) {
          result[i] =
              ToType<T>(attributes.mode == Interpolation::kNearest ? from[i] : std::nearbyint(from[i]));
        } else {
          result[i] = static_cast<T>(from[i]);
        }
      }
    });
  }

  template <typename Number>
  Status Pass(const ResizeAxis& axis, const Plan& plan, std::int64_t outer, std::int64_t inner,
              const Number* from, Number* to) const {
    const std::int64_t grain = GrainOf(kGrain, inner, plan.most_taps);
    return ParallelFor(
        Times(outer, axis.output), grain, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t r = begin; r < end; ++r) {
            const std::int64_t o = r % axis.output;
            const Number* plane = from + r / axis.output * axis.input * inner;
            Number* line = to + r * inner;
            const Taps& taps = plan.taps[o];
            const double* weights = plan.weights + o * plan.most_taps;
            const Number first = taps.outside ? static_cast<Number>(attributes.outside) : Number{0};
            const std::int64_t count = taps.outside ? 0 : taps.count;
            const auto add = [&](std::int64_t j, std::int64_t last) {
              std::fill(line + j, line + last, first);
              for (std::int64_t t = 0; t < count; ++t) {
                const auto weight = static_cast<Number>(weights[t]);
                const Number* source =
                    plane + std::clamp<std::int64_t>(taps.first + t, 0, axis.input - 1) * inner;
                if (weight == 0) continue;
                for (std::int64_t k = j; k < last; ++k) line[k] += weight * source[k];
              }
            };
            if (!pace.For(inner, 1 + count, add)) return;
          }
        });
  }
};

struct ResizeShape {
  static constexpr const char kName[] = "rewire.shape.resize";
  ResizeAttributes attributes;
  static Status Make(Attributes& given, ResizeShape* resize) {
    resize->attributes.axes = given.Ints("axes", {});
    return Status();
  }
  Status operator()(TensorView x, TensorView scales, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ResizedByScales(attributes, input.view(), scales, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct ResizeSizesShape {
  static constexpr const char kName[] = "rewire.shape.resize_sizes";
  enum Policy { kStretch, kNotLarger, kNotSmaller };
  std::vector<std::int64_t> axes;
  Policy policy = kStretch;
  static Status Make(Attributes& attributes, ResizeSizesShape* resize) {
    resize->axes = attributes.Ints("axes", {});
    resize->policy =
        static_cast<Policy>(attributes.Choice("keep_aspect_ratio_policy", kResizePolicies, kStretch));
    return Status();
  }
  Status operator()(TensorView x, TensorView sizes, TensorView out) const {
    Dims result, wanted;
    if (Status s = ReadShape("x", x, &result); !s.ok()) return s;
    if (Status s = ReadShape("sizes", sizes, &wanted); !s.ok()) return s;
    const int rank = result.rank();
    const int count = axes.empty() ? rank : static_cast<int>(axes.size());
    if (wanted.rank() != count) return ValueError("sizes has ", wanted.rank(), " values, expected ", count);
    bool marked[kMaxKernelRank];
    if (Status s = MarkAxes(ShapeView(axes.data(), axes.size()), rank, marked); !s.ok()) return s;
    const auto axis_of = [&](int i) {
      const std::int64_t axis = axes.empty() ? i : axes[static_cast<std::size_t>(i)];
      return static_cast<int>(axis < 0 ? axis + rank : axis);
    };
    // With a policy, all axes get one scale: the smallest or the largest of the requested ones.
    double common = 0;
    for (int i = 0; i < count; ++i) {
      const double scale = static_cast<double>(wanted[i]) / static_cast<double>(result[axis_of(i)]);
      common = i == 0 ? scale : policy == kNotLarger ? std::min(common, scale) : std::max(common, scale);
    }
    for (int i = 0; i < count; ++i) {
      std::int64_t& dim = result[axis_of(i)];
      dim = policy == kStretch ? wanted[i]
                               : ToType<std::int64_t>(std::floor(common * static_cast<double>(dim) + 0.5));
    }
    return WriteShape(result, out);
  }
};

}  // namespace

std::span<const Kernel> ResizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Resize>(
          "x, roi?, scales? -> out", "x, out f32 f64 u8 i8 i32 bf16; roi f32 f64; scales f32 f64",
          "mode = nearest, linear or cubic, coordinate_transformation_mode = half_pixel, pytorch_half_pixel, "
          "align_corners, asymmetric, tf_crop_and_resize, half_pixel_symmetric or tf_half_pixel_for_nn, "
          "nearest_mode = "
          "round_prefer_floor, "
          "round_prefer_ceil, floor or ceil, cubic_coeff_a = -0.75, exclude_outside = 0, extrapolation_value "
          "= 0.0, "
          "antialias = 0, axes = all, keep_aspect_ratio_policy = stretch, not_larger or not_smaller",
          "ONNX Resize to out's shape; without scales an axis' scale is out's size over x's. Sizes by scales "
          "are rounded down, with a policy other than stretch to the nearest"),
      Describe<ResizeShape>("x, scales -> out", "x i64 i32; scales f32 f64; out i64", "axes = all",
                            "the shape of rewire.resize's out from x's shape and the scales themselves"),
      Describe<ResizeSizesShape>("x, sizes -> out", "i64 i32; out i64",
                                 "axes = all, keep_aspect_ratio_policy = stretch, not_larger or not_smaller",
                                 "the shape of rewire.resize's out from x's shape and the sizes themselves"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Resizes tensors along any of their axes, one axis after another.
//
// The filters are separable. Each axis whose size changes is one pass over the tensor, from [outer, axis,
// inner] to [outer, new axis, inner], with a small list of taps for each output position. Passes over 32-bit
// floats run in vectors (resize_lines.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/vision/resample.h"
#include "rewire/kernels/cpu/vision/resize_pass.h"

namespace rewire::kernel::cpu {
namespace {

using ResizeTypes =
    Types<float, double, std::uint8_t, std::int8_t, std::int32_t, std::int64_t, std::uint64_t, BFloat16>;

struct Resize {
  static constexpr const char* kName = names::kResize;
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
      if (attributes.mode == Interpolation::kNearest) {
        const auto outside = static_cast<Number>(attributes.outside);
        T value{};
        RoundAll(&outside, 1, &value);
        return CopyNearest<T>(x, axes, out, value);
      }
      return Run<T, Number>(x, axes, out);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *out = sizes.Tensor(-1);
    if (x == nullptr || out == nullptr || x->ndim != out->ndim) return false;
    std::int64_t positions = 0;
    for (std::int32_t i = 0; i < out->ndim; ++i) positions += Times(1, out->shape[i]);
    if (attributes.mode == Interpolation::kNearest) {
      sizes.Take(positions, sizeof(std::int64_t));
      return true;
    }
    const bool is_float = SameDType(x->dtype, DTypeOf<float>());
    const bool converts = !is_float && !SameDType(x->dtype, DTypeOf<double>());
    const std::int64_t most = MostBetween(x, out, converts);
    const bool halves = is_float || x->dtype.bits == 8 || SameDType(x->dtype, DTypeOf<BFloat16>());
    for (int i = 0; i < 2; ++i) sizes.Take(most, halves ? sizeof(float) : sizeof(double));
    ResizePlan::Declare(attributes, x, out, sizes);
    return true;
  }

 private:
  // The most elements between passes, in whichever axes the sizes differ. With `converts` also of what is
  // before the first pass and behind the last.
  static std::int64_t MostBetween(const DLTensor* x, const DLTensor* out, bool converts) {
    std::int64_t most = converts ? std::max(SizeOf(x), SizeOf(out)) : 1;
    for (std::int32_t i = 1; i < x->ndim; ++i) {
      std::int64_t size = SizeFrom(out, i);
      for (std::int32_t k = 0; k < i; ++k) size = Times(size, x->shape[k]);
      most = std::max(most, size);
    }
    return most;
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

  static constexpr std::int64_t kOutside = -1;

  // Runs of kInner elements, which are too few for a call each.
  template <int kInner, typename T>
  static bool CopyRuns(const T* from, const std::int64_t* source, std::int64_t count, T* to, Pace& pace) {
    return pace.For(count, kInner, [&](std::int64_t o, std::int64_t end) {
      for (; o < end; ++o) {
        for (int k = 0; k < kInner; ++k) to[o * kInner + k] = from[source[o] + k];
      }
    });
  }

  // Runs of `inner` elements at the positions `source` of a line, one behind the other.
  template <typename T>
  static bool CopyLine(const T* from, const std::int64_t* source, std::int64_t count, std::int64_t inner,
                       T* to, Pace& pace) {
    switch (inner) {
      case 1:
        return CopyRuns<1>(from, source, count, to, pace);
      case 2:
        return CopyRuns<2>(from, source, count, to, pace);
      case 3:
        return CopyRuns<3>(from, source, count, to, pace);
      case 4:
        return CopyRuns<4>(from, source, count, to, pace);
      default:
        break;
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

  // Each element is another one, or `outside` where a position lies beyond x: rows of the axes behind the
  // last one that is resized are copied.
  template <typename T>
  Status CopyNearest(TensorView x, const ResizeAxis (&axes)[kMaxKernelRank], TensorView out,
                     T outside) const {
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
        Taps taps{o, 1, false};
        if (!axes[i].IsIdentity(attributes)) taps = axes[i].At(attributes, o, &weight, pace);
        source[o] =
            taps.outside ? kOutside : std::clamp<std::int64_t>(taps.first, 0, axes[i].input - 1) * step;
      }
      sources[i] = source;
      source += axes[i].output;
      step *= axes[i].input;
    }
    const std::int64_t count = axes[last].output;
    // A region is one run of the line.
    const std::int64_t* const of_line = sources[last];
    const auto is_inside = [](std::int64_t place) { return place != kOutside; };
    const std::int64_t first = std::find_if(of_line, of_line + count, is_inside) - of_line;
    const std::int64_t end_inside = std::find(of_line + first, of_line + count, kOutside) - of_line;
    const std::int64_t rows = Product(out.dims(), 0, last);
    return ParallelFor(rows, GrainOf(kGrain, count, inner),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         const std::int64_t elements = count * inner;
                         std::int64_t before = -2;  // where the row before came from
                         for (std::int64_t row = begin; row < end; ++row) {
                           std::int64_t from = 0, rest = row;
                           for (int i = last - 1; i >= 0; --i) {
                             const std::int64_t place = sources[i][rest % axes[i].output];
                             from = from == kOutside || place == kOutside ? kOutside : from + place;
                             rest /= axes[i].output;
                           }
                           T* to = out.data<T>() + row * elements;
                           bool done = true;
                           if (from == before) {
                             done = pace.Copy(to, to - elements, elements * std::int64_t{sizeof(T)});
                           } else if (from == kOutside) {
                             done = pace.Fill(to, elements, outside);
                           } else {
                             done = pace.Fill(to, first * inner, outside) &&
                                    CopyLine(x.data<T>() + from, of_line + first, end_inside - first, inner,
                                             to + first * inner, pace) &&
                                    pace.Fill(to + end_inside * inner, (count - end_inside) * inner, outside);
                           }
                           if (!done) return;
                           before = from;
                         }
                       });
  }

  // Passes from x through two buffers to the result, or where its elements are not the numbers of the passes,
  // to another buffer. Numbers in between are not rounded to T. The last axes come first: the lines of the
  // others are then longer, and what grows is small for longer.
  template <typename T, typename Number>
  Status Run(TensorView x, const ResizeAxis (&axes)[kMaxKernelRank], TensorView out) const {
    constexpr bool kConverts = !std::is_same_v<T, Number>;
    const int rank = x.ndim();
    int first = rank;  // the axis of the last pass
    for (int i = rank - 1; i >= 0; --i) {
      if (!axes[i].IsIdentity(attributes)) first = i;
    }
    if (first == rank) return CopyAll(out.raw_data(), x.raw_data(), Times(x.size(), sizeof(T)));
    Number* buffers[2];
    const std::int64_t most = MostBetween(x.dl_tensor(), out.dl_tensor(), kConverts);
    for (Number*& buffer : buffers) {
      if (Status s = Workspace(most, &buffer); !s.ok()) return s;
    }
    ResizePlan plan;
    if (Status s = plan.Reserve(attributes, axes, rank); !s.ok()) return s;
    const Number* from = nullptr;
    if constexpr (kConverts) {
      const T* in = x.data<T>();
      Status s = ParallelFor(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        WideLoop([=, to = buffers[1]] {
          for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<Number>(in[i]);
        });
      });
      if (!s.ok()) return s;
      from = buffers[1];
    } else {
      from = x.data<T>();
    }
    Dims now(x.dims());
    int passes = 0;
    for (int i = rank - 1; i >= first; --i) {
      if (axes[i].IsIdentity(attributes)) continue;
      if (Status s = plan.Make(attributes, axes[i]); !s.ok()) return s;
      Number* to = buffers[passes++ % 2];
      if constexpr (!kConverts) {
        if (i == first) to = out.data<T>();
      }
      Status s = ResizePass(axes[i], plan, Product(now.view(), 0, i), Product(now.view(), i + 1, rank),
                            attributes.outside, from, to);
      if (!s.ok()) return s;
      now[i] = axes[i].output;
      from = to;
    }
    if constexpr (kConverts) {
      T* result = out.data<T>();
      return ParallelFor(out.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        RoundAll(from + begin, end - begin, result + begin);
      });
    }
    return Status();
  }

  template <typename T, typename Number>
  void RoundAll(const Number* from, std::int64_t count, T* to) const {
    const bool nearest = attributes.mode == Interpolation::kNearest;
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(std::int32_t)) {
      // As ToType, without branches.
      WideLoop([=] {
        constexpr auto kLeast = static_cast<Number>(std::numeric_limits<T>::min());
        constexpr auto kMost = static_cast<Number>(std::numeric_limits<T>::max());
        for (std::int64_t i = 0; i < count; ++i) {
          const Number whole = nearest ? from[i] : std::nearbyint(from[i]);
          const Number number = whole == whole ? whole : Number{0};
          const Number held = number > kLeast ? number : kLeast;
          to[i] = static_cast<T>(ToTypeInRange<std::int32_t>(held < kMost ? held : kMost));
        }
      });
    } else if constexpr (std::is_integral_v<T>) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = ToType<T>(nearest ? from[i] : std::nearbyint(from[i]));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
    }
  }
};

struct ResizeShape {
  static constexpr const char* kName = names::kShapeResize;
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
  static constexpr const char* kName = names::kShapeResizeSizes;
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
    Dims input, result, wanted;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("sizes", sizes, &wanted); !s.ok()) return s;
    const int rank = input.rank();
    const int count = axes.empty() ? rank : static_cast<int>(axes.size());
    if (wanted.rank() != count) return ValueError("sizes has ", wanted.rank(), " values, expected ", count);
    bool marked[kMaxKernelRank];
    if (Status s = MarkAxes(ShapeView(axes.data(), axes.size()), rank, marked); !s.ok()) return s;
    // With a policy, all axes get one scale: the smallest or the largest of the requested ones.
    double common = 0;
    const auto asked = [&](std::size_t i, std::size_t axis) {
      const double scale = static_cast<double>(wanted[i]) / static_cast<double>(input[axis]);
      common = i == 0 ? scale : policy == kNotLarger ? std::min(common, scale) : std::max(common, scale);
      return wanted[i];
    };
    Status s = contract::ResizedSizes(input.view(), axes, asked, &result, kShapeError);
    if (s.ok() && policy != kStretch) {
      const auto scaled = [&](std::size_t, std::size_t axis) {
        return ToType<std::int64_t>(std::floor(common * static_cast<double>(input[axis]) + 0.5));
      };
      result = Dims();
      s = contract::ResizedSizes(input.view(), axes, scaled, &result, kShapeError);
    }
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

}  // namespace

std::span<const Kernel> ResizeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Resize>(
          "x, roi?, scales? -> out", "x, out f32 f64 u8 i8 i32 i64 u64 bf16; roi f32 f64; scales f32 f64",
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

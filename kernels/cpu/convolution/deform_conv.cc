// SPDX-License-Identifier: Apache-2.0
//
// Convolution whose windows are deformed: each tap reads the image at an offset of its own, between pixels.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

// Planes with a border of zeros: a row above, two below, a column on each side. Four neighbors are read
// without a question whether they lie in the image. The two rows below are those of what is outside of it.
struct Bordered {
  std::int64_t height, width;

  std::int64_t step() const { return width + 2; }
  std::int64_t size() const { return Times(height + 3, width + 2); }
  template <typename T>
  void Copy(const T* plane, T* to) const {
    std::fill_n(to, step() + 1, T{0});
    to += step() + 1;
    for (std::int64_t i = 0; i < height; ++i, plane += width, to += step()) {
      std::copy_n(plane, width, to);
      std::fill_n(to + width, 2, T{0});
    }
    std::fill_n(to, 2 * step() - 1, T{0});
  }
};

// Places say where taps read: the first of four neighbors in a bordered plane, and the later ones' parts.
template <typename T>
struct Places {
  std::int64_t* first;
  T* below;
  T* right;

  // The value of each place.
  void Read(const T* plane, std::int64_t step, std::int64_t begin, std::int64_t end, T* to) const {
    WideLoop([plane, step, begin, end, to, at = *this] {
      for (std::int64_t p = begin; p < end; ++p) {
        const T *above = plane + at.first[p], *under = above + step;
        const T below = at.below[p], right = at.right[p];
        to[p] = (1 - below) * ((1 - right) * above[0] + right * above[1]) +
                below * ((1 - right) * under[0] + right * under[1]);
      }
    });
  }
};

struct DeformConv {
  static constexpr const char* kName = names::kDeformConv;
  WindowAttributes attributes;
  std::int64_t groups = 1, offset_groups = 1;
  static Status Make(Attributes& given, DeformConv* conv) {
    conv->attributes.Read(given, false, false);
    conv->groups = given.Int("group", 1, 1);
    conv->offset_groups = given.Int("offset_group", 1, 1);
    return conv->attributes.Check();
  }

  Status operator()(TensorView x, TensorView w, TensorView offset, std::optional<TensorView> bias,
                    std::optional<TensorView> mask, TensorView out) const {
    Window window;
    if (Status s = Resolve(x, w, offset, bias, mask, out, &window); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      return Run<typename decltype(tag)::type>(x, w, offset, bias, mask, out, window);
    });
  }

  // The bordered planes and the windows of one group, where an image's taps read, and the product.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 4), *w = sizes.Tensor(1, 4), *out = sizes.Tensor(-1, 4);
    if (x == nullptr || w == nullptr || out == nullptr) return false;
    const std::int64_t depth = SizeFrom(w, 1), positions = SizeFrom(out, 2), element = out->dtype.bits / 8;
    const std::int64_t places = Times(offset_groups, SizeFrom(w, 2), positions);
    sizes.Take(Times(w->shape[1], Bordered{x->shape[2], x->shape[3]}.size()), element);
    sizes.Take(Times(depth, positions), element);
    sizes.Take(places, sizeof(std::int64_t));
    sizes.Take(places, element);
    sizes.Take(places, element);
    sizes.TakeGemm(w->shape[0] / groups, positions, depth, out->dtype);
    return true;
  }

 private:
  Status CheckPart(const char* name, TensorView part, std::int64_t per_tap, TensorView x, TensorView out,
                   const Window& window) const {
    const WindowAxis &rows = window.axes[1], &columns = window.axes[2];
    const std::int64_t expected[] = {x.dim(0), Times(offset_groups, window.taps(), per_tap), rows.output,
                                     columns.output};
    Checks checks;
    checks.Dense(name, part).SameDType(name, part, "x", x).Shape(name, part, ShapeView(expected, 4));
    return checks.NoOverlap("out", out, name, part).Take();
  }

  Status Resolve(TensorView x, TensorView w, TensorView offset, const std::optional<TensorView>& bias,
                 const std::optional<TensorView>& mask, TensorView out, Window* window) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out).Rank("x", x, 4).Rank("w", w, 4);
    if (Status s = checks.SameDType("w", w, "x", x).SameDType("out", out, "x", x).Take(); !s.ok()) return s;
    if (Times(w.dim(1), groups) != x.dim(1) || w.dim(0) % groups != 0 || x.dim(1) % offset_groups != 0) {
      return ValueError("w has shape ", w.dims(), " for x of shape ", x.dims(), ", ", groups, " groups and ",
                        offset_groups, " groups of offsets, expected [M, C / groups, ...]");
    }
    if (Status s = attributes.Resolve(x.dims(), ShapeView(w.dims().data() + 2, 2), window); !s.ok()) return s;
    if (Status s = CheckShape("out", out, window->OutputDims(x.dim(0), w.dim(0)).view()); !s.ok()) return s;
    if (Status s = CheckPart("offset", offset, 2, x, out, *window); !s.ok()) return s;
    if (IsGiven(mask)) {
      if (Status s = CheckPart("mask", *mask, 1, x, out, *window); !s.ok()) return s;
    }
    if (!IsGiven(bias)) return Status();
    const std::int64_t channels = w.dim(0);
    Checks last;
    last.Dense("bias", *bias).SameDType("bias", *bias, "x", x).Shape("bias", *bias, ShapeView(&channels, 1));
    return last.NoOverlap("out", out, "bias", *bias).Take();
  }

  template <typename T>
  Status Run(TensorView x, TensorView w, TensorView offset, const std::optional<TensorView>& bias,
             const std::optional<TensorView>& mask, TensorView out, const Window& window) const {
    if (out.size() == 0) return Status();
    const std::int64_t positions = window.outputs(), taps = window.taps(), plane = window.inputs();
    const std::int64_t out_channels = w.dim(0) / groups, channels = w.dim(1);
    const std::int64_t depth = Times(channels, taps);
    Pace pace;
    for (std::int64_t i = 0; i < Times(out.dim(0), out.dim(1)); ++i) {
      const T first = IsGiven(bias) ? bias->data<T>()[i % out.dim(1)] : T{0};
      if (!pace.Spend(1) || !pace.Fill(out.data<T>() + i * positions, positions, first)) return Stopped();
    }
    if (x.size() == 0 || w.size() == 0) return Status();
    GemmScratch<T> scratch;
    const Bordered bordered{x.dim(2), x.dim(3)};
    const std::int64_t all_places = Times(offset_groups, taps, positions);
    T *planes = nullptr, *windows = nullptr;
    Places<T> places;
    if (Status s = Workspace(Times(channels, bordered.size()), &planes); !s.ok()) return s;
    if (Status s = Workspace(Times(depth, positions), &windows); !s.ok()) return s;
    if (Status s = Workspace(all_places, &places.first); !s.ok()) return s;
    if (Status s = Workspace(all_places, &places.below); !s.ok()) return s;
    if (Status s = Workspace(all_places, &places.right); !s.ok()) return s;
    const std::int64_t per_offset = x.dim(1) / offset_groups;
    for (std::int64_t i = 0; i < Times(x.dim(0), groups); ++i) {
      const std::int64_t image = i / groups, group = i % groups;
      if (group == 0) {
        Status s = FindPlaces(offset.data<T>() + 2 * image * all_places, window, bordered, places);
        if (!s.ok()) return s;
      }
      const T* in = x.data<T>() + i * channels * plane;
      Status s = ParallelFor(channels, GrainOf(kGrain, bordered.size()),
                             [&](std::int64_t begin, std::int64_t end, Pace& of_thread) {
                               for (; begin < end && of_thread.Spend(bordered.size() / 4); ++begin)
                                 bordered.Copy(in + begin * plane, planes + begin * bordered.size());
                             });
      if (!s.ok()) return s;
      // A task is one tap of one channel.
      s = ParallelFor(
          depth, GrainOf(kGrain, positions, 4), [&](std::int64_t begin, std::int64_t end, Pace& of_thread) {
            for (std::int64_t t = begin; t < end; ++t) {
              const std::int64_t of_group = (group * channels + t / taps) / per_offset;
              const std::int64_t shift = (of_group * taps + t % taps) * positions;
              const Places<T> at{places.first + shift, places.below + shift, places.right + shift};
              const T* factors = IsGiven(mask) ? mask->data<T>() + image * all_places + shift : nullptr;
              const T* from = planes + t / taps * bordered.size();
              T* to = windows + t * positions;
              const auto read = [&](std::int64_t p, std::int64_t last) {
                at.Read(from, bordered.step(), p, last, to);
                if (factors == nullptr) return;
                for (; p < last; ++p) to[p] *= factors[p];
              };
              if (!of_thread.For(positions, 4, read)) return;
            }
          });
      if (!s.ok()) return s;
      const Matrix<T> weights{w.data<T>() + group * out_channels * depth, depth, 1};
      const Matrix<T> right{windows, positions, 1};
      s = Gemm<T>(out_channels, positions, depth, weights, right,
                  out.data<T>() + i * out_channels * positions, positions, scratch);
      if (!s.ok()) return s;
    }
    return Status();
  }

  // The places of all taps of an image, for each group of offsets. The offsets of a tap are those of rows,
  // then those of columns.
  template <typename T>
  Status FindPlaces(const T* offsets, const Window& window, Bordered bordered, Places<T> places) const {
    const WindowAxis &rows = window.axes[1], &columns = window.axes[2];
    const std::int64_t positions = window.outputs(), taps = window.taps();
    // A task is one row of outputs of one tap.
    return ParallelFor(
        Times(offset_groups, taps, rows.output), GrainOf(kGrain, columns.output, 8),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (; begin < end; ++begin) {
            const std::int64_t tap = begin / rows.output, row = begin % rows.output;
            const std::int64_t shift = row * columns.output;
            const auto down = static_cast<T>(tap % taps / columns.kernel * rows.dilation);
            const auto across = static_cast<T>(tap % columns.kernel * columns.dilation);
            const T* of_tap = offsets + 2 * tap * positions + shift;
            const std::int64_t at = tap * positions + shift;
            const Places<T> to{places.first + at, places.below + at, places.right + at};
            const bool done = pace.For(columns.output, 8, [&](std::int64_t p, std::int64_t last) {
              WideLoop([=, start = static_cast<T>(rows.start(row)) + down, stride = columns.stride,
                        before = columns.before, p = p] {
                for (std::int64_t i = p; i < last; ++i) {
                  const T y = start + of_tap[i];
                  const T x = static_cast<T>(i * stride - before) + across + of_tap[positions + i];
                  FindPlace(y, x, bordered, to, i);
                }
              });
            });
            if (!done) return;
          }
        });
  }

  template <typename T>
  static void FindPlace(T y, T x, Bordered image, const Places<T>& to, std::int64_t i) {
    const bool inside =
        y > -1 && y < static_cast<T>(image.height) && x > -1 && x < static_cast<T>(image.width);
    const T top = inside ? std::floor(y) : static_cast<T>(0),
            left = inside ? std::floor(x) : static_cast<T>(0);
    to.first[i] =
        inside ? (ToTypeInRange<std::int64_t>(top) + 1) * image.step() + ToTypeInRange<std::int64_t>(left) + 1
               : (image.height + 1) * image.step();
    to.below[i] = inside ? y - top : 0;
    to.right[i] = inside ? x - left : 0;
  }
};

}  // namespace

std::span<const Kernel> DeformConvKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<DeformConv>(
          "x, w, offset, bias?, mask? -> out", "f32 f64",
          "group = 1, offset_group = 1, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET",
          "convolution of x [N, C, H, W] by w [M, C / group, ...] plus bias [M], where each tap reads x at "
          "its "
          "place plus offset [N, offset_group * taps * 2, ...], between pixels and 0 outside, times mask [N, "
          "offset_group * taps, ...]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Convolution whose windows are deformed: each tap reads the image at an offset of its own, between pixels.
#include <cmath>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// The plane's value at (y, x), which lies between pixels; outside it is 0.
template <typename T>
T Sample(const T* plane, std::int64_t height, std::int64_t width, T y, T x) {
  if (!(y > -1 && y < static_cast<T>(height) && x > -1 && x < static_cast<T>(width))) return 0;
  const T top = std::floor(y), left = std::floor(x);
  const auto row = ToType<std::int64_t>(top), column = ToType<std::int64_t>(left);
  const auto pixel = [&](std::int64_t i, std::int64_t j) {
    return i >= 0 && i < height && j >= 0 && j < width ? plane[i * width + j] : T{0};
  };
  const T below = y - top, right = x - left;
  return (1 - below) * ((1 - right) * pixel(row, column) + right * pixel(row, column + 1)) +
         below * ((1 - right) * pixel(row + 1, column) + right * pixel(row + 1, column + 1));
}

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

  // The windows of one group, and their product with the weights.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *w = sizes.Tensor(1, 4), *out = sizes.Tensor(-1, 4);
    if (w == nullptr || out == nullptr) return false;
    const std::int64_t depth = SizeFrom(w, 1), positions = SizeFrom(out, 2);
    sizes.Take(Times(depth, positions), out->dtype.bits / 8);
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
    T* windows = nullptr;
    if (Status s = Workspace(Times(depth, positions), &windows); !s.ok()) return s;
    const std::int64_t per_offset = x.dim(1) / offset_groups;
    for (std::int64_t i = 0; i < Times(x.dim(0), groups); ++i) {
      const std::int64_t image = i / groups, group = i % groups;
      // A task is one tap of one channel.
      Status s = ParallelFor(
          depth, GrainOf(kGrain, positions, 16), [&](std::int64_t begin, std::int64_t end, Pace& of_thread) {
            for (std::int64_t t = begin; t < end && !of_thread.stopped(); ++t) {
              const std::int64_t channel = group * channels + t / taps;
              const std::int64_t shift = (image * offset_groups + channel / per_offset) * taps + t % taps;
              ReadTap(x.data<T>() + (image * x.dim(1) + channel) * plane, window, t % taps,
                      offset.data<T>() + 2 * shift * positions,
                      IsGiven(mask) ? mask->data<T>() + shift * positions : nullptr, windows + t * positions,
                      of_thread);
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

  // ReadTap reads one tap for each output position. The offsets are those of rows, then those of columns.
  template <typename T>
  static void ReadTap(const T* plane, const Window& window, std::int64_t tap, const T* offset, const T* mask,
                      T* to, Pace& pace) {
    const WindowAxis &rows = window.axes[1], &columns = window.axes[2];
    const std::int64_t positions = window.outputs();
    const std::int64_t row = tap / columns.kernel, column = tap % columns.kernel;
    const auto down = static_cast<T>(row * rows.dilation), across = static_cast<T>(column * columns.dilation);
    static_cast<void>(pace.For(positions, 16, [&](std::int64_t p, std::int64_t end) {
      for (; p < end; ++p) {
        const T y = static_cast<T>(rows.start(p / columns.output)) + down + offset[p];
        const T x = static_cast<T>(columns.start(p % columns.output)) + across + offset[positions + p];
        const T value = Sample(plane, rows.input, columns.input, y, x);
        to[p] = mask == nullptr ? value : value * mask[p];
      }
    }));
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

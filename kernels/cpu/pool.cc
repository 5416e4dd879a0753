// SPDX-License-Identifier: Apache-2.0
// Pooling of NCHW images.
#include <algorithm>
#include <limits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/window.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckPool(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x)
      .Dense("out", out)
      .Rank("x", x, 4)
      .SameDType("out", out, "x", x)
      .NoOverlap("out", out, "x", x);
  return checks.Take();
}

// Calls window(plane, y range, x range, position) for each output position; the ranges are of window
// positions that lie on the image.
template <typename T, typename Body>
void ForEachWindow(TensorView x, TensorView out, const WindowAxis (&axes)[2], const Body& body) {
  const std::int64_t height = x.dim(2), width = x.dim(3);
  const std::int64_t out_height = out.dim(2), out_width = out.dim(3);
  const std::int64_t work = out_height * out_width * axes[0].kernel * axes[1].kernel;
  ParallelFor(x.dim(0) * x.dim(1), std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, work)),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t p = begin; p < end; ++p) {
                  const T* plane = x.data<T>() + p * height * width;
                  T* to = out.data<T>() + p * out_height * out_width;
                  for (std::int64_t oy = 0; oy < out_height; ++oy) {
                    std::int64_t y0, y1;
                    axes[0].Inside(oy, height, &y0, &y1);
                    for (std::int64_t ox = 0; ox < out_width; ++ox) {
                      std::int64_t x0, x1;
                      axes[1].Inside(ox, width, &x0, &x1);
                      const T* origin = plane + (oy * axes[0].stride - axes[0].before) * width +
                                        ox * axes[1].stride - axes[1].before;
                      *to++ = body(origin, y0, y1, x0, x1, oy, ox);
                    }
                  }
                }
              });
}

struct MaxPool {
  static constexpr const char kName[] = "rewire.max_pool";
  WindowAttributes window;
  static Status Make(Attributes& attributes, MaxPool* pool) {
    pool->window.Read(attributes, true, true);
    return pool->window.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckPool(x, out); !s.ok()) return s;
    WindowAxis axes[2];
    std::int64_t size[2];
    if (Status s = window.Resolve({x.dim(2), x.dim(3)}, axes, size); !s.ok()) return s;
    const std::int64_t expected[] = {x.dim(0), x.dim(1), size[0], size[1]};
    if (Status s = CheckShape("out", out, ShapeView(expected, 4)); !s.ok()) return s;
    return ForType(Types<float, double, std::int8_t, std::uint8_t>(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::int64_t line = x.dim(3) * axes[0].dilation;
      const std::int64_t step = axes[1].dilation;
      ForEachWindow<T>(x, out, axes,
                       [=](const T* origin, std::int64_t y0, std::int64_t y1, std::int64_t x0,
                           std::int64_t x1, std::int64_t, std::int64_t) {
                         using Limits = std::numeric_limits<T>;
                         T most = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
                         for (std::int64_t i = y0; i < y1; ++i) {
                           for (std::int64_t j = x0; j < x1; ++j) {
                             const T value = origin[i * line + j * step];
                             most = value > most || value != value ? value : most;
                           }
                         }
                         return most;
                       });
      return Status();
    });
  }
};

struct AveragePool {
  static constexpr const char kName[] = "rewire.avg_pool";
  WindowAttributes window;
  bool count_pad = false;
  static Status Make(Attributes& attributes, AveragePool* pool) {
    pool->window.Read(attributes, true, true);
    pool->count_pad = attributes.Bool("count_include_pad", false);
    return pool->window.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckPool(x, out); !s.ok()) return s;
    WindowAxis axes[2];
    std::int64_t size[2];
    if (Status s = window.Resolve({x.dim(2), x.dim(3)}, axes, size); !s.ok()) return s;
    const std::int64_t expected[] = {x.dim(0), x.dim(1), size[0], size[1]};
    if (Status s = CheckShape("out", out, ShapeView(expected, 4)); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::int64_t height = x.dim(2), width = x.dim(3);
      const std::int64_t line = width * axes[0].dilation;
      const std::int64_t step = axes[1].dilation;
      ForEachWindow<T>(x, out, axes,
                       [&, line, step](const T* origin, std::int64_t y0, std::int64_t y1, std::int64_t x0,
                                       std::int64_t x1, std::int64_t oy, std::int64_t ox) {
                         T sum = 0;
                         for (std::int64_t i = y0; i < y1; ++i) {
                           for (std::int64_t j = x0; j < x1; ++j) sum += origin[i * line + j * step];
                         }
                         const std::int64_t count =
                             count_pad
                                 ? Covered(axes[0], oy, height) * Covered(axes[1], ox, width)
                                 : std::max<std::int64_t>(0, y1 - y0) * std::max<std::int64_t>(0, x1 - x0);
                         return count == 0 ? T{0} : sum / static_cast<T>(count);
                       });
      return Status();
    });
  }

 private:
  // Window positions on the image or its pads: ceil_mode may reach past both.
  static std::int64_t Covered(const WindowAxis& axis, std::int64_t o, std::int64_t size) {
    const std::int64_t room = size + axis.before + axis.after - o * axis.stride;
    return std::min(axis.kernel, (room - 1) / axis.dilation + 1);
  }
};

}  // namespace

std::span<const Kernel> PoolKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MaxPool>(
          "x, out", "f32 f64 i8 u8",
          "kernel_shape, strides = 1 1, dilations = 1 1, pads = 0 0 0 0, auto_pad = NOTSET, ceil_mode = 0",
          "the largest element under each window of x [N, C, H, W]; NaN if one is"),
      Describe<AveragePool>(
          "x, out", "f32 f64",
          "kernel_shape, strides = 1 1, dilations = 1 1, pads = 0 0 0 0, auto_pad = NOTSET, "
          "ceil_mode = 0, count_include_pad = 0",
          "the mean under each window of x [N, C, H, W], of the elements on the image or with its pads"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution of NCHW images.
//
// With many output channels a group is one matrix product, weights [M, C * KH * KW] by the windows [C * KH *
// KW, OH * OW]; the windows are never all in memory, Gemm asks for blocks of them. With few (depthwise above
// all) each weight is a scaled row added to a row.
#include <algorithm>

#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {

Status Conv2dAttributes::Read(Attributes& attributes) {
  window.Read(attributes, false, false);
  groups = attributes.Int("group", 1, 1);
  return window.Check();
}

Status Conv2dAttributes::Resolve(ShapeView x, ShapeView w, WindowAxis (&axes)[2], Dims* result) const {
  if (x.size() != 4) return ValueError("x has shape ", x, ", expected [N, C, H, W]");
  if (w.size() != 4) return ValueError("w has shape ", w, ", expected [M, C / group, KH, KW]");
  if (w[1] != x[1] / groups || x[1] % groups != 0) {
    return ValueError("w has shape ", w, ", expected ", x[1], " / ", groups, " channels as x of shape ", x,
                      " with ", groups, " groups");
  }
  if (w[0] % groups != 0)
    return ValueError("w has shape ", w, ": ", w[0], " is no multiple of ", groups, " groups");
  if (w[2] < 1 || w[3] < 1) return ValueError("w has shape ", w, ": the kernel is empty");
  WindowAttributes resolved = window;
  resolved.kernel[0] = w[2];
  resolved.kernel[1] = w[3];
  std::int64_t size[2];
  if (Status s = resolved.Resolve({x[2], x[3]}, axes, size); !s.ok()) return s;
  *result = Dims();
  for (std::int64_t dim : {x[0], w[0], size[0], size[1]}) result->push_back(dim);
  return Status();
}

namespace {

// The output positions o in [0, size) for which o * stride + shift lies in [0, input).
void InsideRow(std::int64_t shift, std::int64_t stride, std::int64_t input, std::int64_t size,
               std::int64_t* first, std::int64_t* last) {
  *first = shift < 0 ? (-shift + stride - 1) / stride : 0;
  *last = shift >= input ? 0 : std::min(size, (input - 1 - shift) / stride + 1);
  *first = std::min(*first, *last);
}

// One image's channels of one group as the matrix of its windows.
template <typename T>
struct Windows {
  const T* image;
  std::int64_t height, width, out_width;
  WindowAxis rows, columns;

  static void Pack(const void* context, std::int64_t k0, std::int64_t depth, std::int64_t j0,
                   std::int64_t count, std::int64_t width, T* to) {
    const auto& self = *static_cast<const Windows*>(context);
    for (std::int64_t k = k0; k < k0 + depth; ++k, to += width) {
      const std::int64_t kx = k % self.columns.kernel;
      const std::int64_t ky = k / self.columns.kernel % self.rows.kernel;
      const std::int64_t channel = k / (self.columns.kernel * self.rows.kernel);
      const T* plane = self.image + channel * self.height * self.width;
      self.PackRow(plane, ky, kx, j0, count, to);
      std::fill(to + count, to + width, T{0});
    }
  }

 private:
  // What weight (ky, kx) meets at output positions j0 to j0 + count, output row by output row.
  void PackRow(const T* plane, std::int64_t ky, std::int64_t kx, std::int64_t j0, std::int64_t count,
               T* to) const {
    const std::int64_t shift = kx * columns.dilation - columns.before;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    InsideRow(shift, columns.stride, width, out_width, &begin, &end);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t oy = (j0 + done) / out_width;
      const std::int64_t ox = (j0 + done) % out_width;
      const std::int64_t run = std::min(out_width - ox, count - done);
      const std::int64_t y = oy * rows.stride - rows.before + ky * rows.dilation;
      T* row = to + done - ox;  // row[o] is output column o
      if (y < 0 || y >= height) {
        std::fill_n(row + ox, run, T{0});
      } else {
        const T* line = plane + y * width + shift;
        const std::int64_t first = std::clamp(begin, ox, ox + run);
        const std::int64_t last = std::clamp(end, first, ox + run);
        std::fill(row + ox, row + first, T{0});
        if (columns.stride == 1)
          std::copy(line + first, line + last, row + first);
        else
          for (std::int64_t o = first; o < last; ++o) row[o] = line[o * columns.stride];
        std::fill(row + last, row + ox + run, T{0});
      }
      done += run;
    }
  }
};

struct Conv2d {
  static constexpr const char kName[] = "rewire.conv2d";
  Conv2dAttributes attributes;

  static Status Make(Attributes& given, Conv2d* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    Checks checks;
    checks.Dense("x", x)
        .Dense("w", w)
        .Dense("out", out)
        .SameDType("w", w, "x", x)
        .SameDType("out", out, "x", x);
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "w", w);
    if (Status s = checks.Take(); !s.ok()) return s;
    WindowAxis axes[2];
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), w.dims(), axes, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (bias) {
      const std::int64_t channels = w.dim(0);
      checks.Dense("bias", *bias)
          .SameDType("bias", *bias, "x", x)
          .Shape("bias", *bias, ShapeView(&channels, 1));
      if (Status s = checks.NoOverlap("out", out, "bias", *bias).Take(); !s.ok()) return s;
    }
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, w, bias, out, axes); });
  }

 private:
  template <typename T>
  Status Run(TensorView x, TensorView w, const std::optional<TensorView>& bias, TensorView out,
             const WindowAxis (&axes)[2]) const {
    const std::int64_t plane = out.dim(2) * out.dim(3);
    const std::int64_t channels = out.dim(1);
    const std::int64_t group_channels = channels / attributes.groups;
    if (out.size() == 0) return Status();
    for (std::int64_t i = 0; i < out.dim(0) * channels; ++i) {
      std::fill_n(out.data<T>() + i * plane, plane, bias ? bias->data<T>()[i % channels] : T{0});
    }
    const std::int64_t in_channels = w.dim(1);
    const std::int64_t in_plane = x.dim(2) * x.dim(3);
    const std::int64_t depth = in_channels * w.dim(2) * w.dim(3);
    if (group_channels < 4) {
      RunByRows<T>(x, w, out, axes);
      return Status();
    }
    for (std::int64_t image = 0; image < out.dim(0); ++image) {
      for (std::int64_t group = 0; group < attributes.groups; ++group) {
        const Windows<T> windows{x.data<T>() + (image * x.dim(1) + group * in_channels) * in_plane,
                                 x.dim(2),
                                 x.dim(3),
                                 out.dim(3),
                                 axes[0],
                                 axes[1]};
        const Matrix<T> weights{w.data<T>() + group * group_channels * depth, depth, 1};
        T* to = out.data<T>() + (image * channels + group * group_channels) * plane;
        Status s =
            Gemm<T>(group_channels, plane, depth, weights, Source<T>{&Windows<T>::Pack, &windows}, to, plane);
        if (!s.ok()) return s;
      }
    }
    return Status();
  }

  template <typename T>
  void RunByRows(TensorView x, TensorView w, TensorView out, const WindowAxis (&axes)[2]) const {
    const std::int64_t channels = out.dim(1);
    const std::int64_t work = out.dim(2) * out.dim(3) * w.dim(1) * w.dim(2) * w.dim(3);
    ParallelFor(out.dim(0) * channels, std::max<std::int64_t>(1, 4 * kGrain / work),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i)
                    AddPlane<T>(x, w, out, axes, i / channels, i % channels);
                });
  }

  // Adds to one channel of one image.
  template <typename T>
  void AddPlane(TensorView x, TensorView w, TensorView out, const WindowAxis (&axes)[2], std::int64_t image,
                std::int64_t channel) const {
    const std::int64_t height = x.dim(2), width = x.dim(3);
    const std::int64_t out_height = out.dim(2), out_width = out.dim(3);
    const std::int64_t in_channels = w.dim(1);
    const std::int64_t first_channel = channel / (out.dim(1) / attributes.groups) * in_channels;
    const T* weight = w.data<T>() + channel * in_channels * w.dim(2) * w.dim(3);
    T* plane = out.data<T>() + (image * out.dim(1) + channel) * out_height * out_width;
    for (std::int64_t c = 0; c < in_channels; ++c) {
      const T* in = x.data<T>() + (image * x.dim(1) + first_channel + c) * height * width;
      for (std::int64_t ky = 0; ky < w.dim(2); ++ky) {
        for (std::int64_t kx = 0; kx < w.dim(3); ++kx) {
          const T factor = *weight++;
          const std::int64_t shift = kx * axes[1].dilation - axes[1].before;
          std::int64_t first = 0;
          std::int64_t last = 0;
          InsideRow(shift, axes[1].stride, width, out_width, &first, &last);
          for (std::int64_t oy = 0; oy < out_height; ++oy) {
            const std::int64_t y = oy * axes[0].stride - axes[0].before + ky * axes[0].dilation;
            if (y < 0 || y >= height) continue;
            AddRow(plane + oy * out_width, in + y * width + shift, axes[1].stride, factor, first, last);
          }
        }
      }
    }
  }

  template <typename T>
  static void AddRow(T* to, const T* from, std::int64_t stride, T factor, std::int64_t first,
                     std::int64_t last) {
    if (stride == 1) {
      for (std::int64_t o = first; o < last; ++o) to[o] += factor * from[o];
    } else {
      for (std::int64_t o = first; o < last; ++o) to[o] += factor * from[o * stride];
    }
  }
};

}  // namespace

std::span<const Kernel> Conv2dKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Conv2d>(
          "x, w, bias?, out", "f32 f64",
          "group = 1, strides = 1 1, dilations = 1 1, pads = 0 0 0 0 (top, left, bottom, right), auto_pad "
          "= NOTSET, SAME_UPPER, SAME_LOWER or VALID",
          "x [N, C, H, W] with weights [M, C / group, KH, KW], plus bias [M]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

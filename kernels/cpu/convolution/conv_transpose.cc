// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution, col2im and max unpooling: they spread small images over larger ones.
#include "rewire/kernels/cpu/convolution/conv_transpose.h"

#include <algorithm>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/convolution/conv_transpose_attributes.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

struct ConvTranspose {
  static constexpr const char* kName = names::kConvTranspose;
  ConvTransposeAttributes attributes;
  static Status Make(Attributes& given, ConvTranspose* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    Window window;
    if (Status s = CheckConvArguments(attributes, x, w, bias, out, &window); !s.ok()) return s;
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, w, bias, out, window); });
  }
  // The windows of one group before they are added up, and their product.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 3), *w = sizes.Tensor(1, 3);
    if (x == nullptr || w == nullptr) return false;
    const std::int64_t rows = SizeFrom(w, 1);
    const std::int64_t positions = SizeFrom(x, 2);
    sizes.Take(Times(rows, positions), x->dtype.bits / 8);
    sizes.TakeGemm(rows, positions, w->shape[0] / attributes.groups, x->dtype);
    return true;
  }

 private:
  template <typename T>
  Status Run(TensorView x, TensorView w, const std::optional<TensorView>& bias, TensorView out,
             const Window& window) const {
    if (out.size() == 0) return Status();
    const std::int64_t channels = out.dim(1);
    const std::int64_t group_channels = channels / attributes.groups;
    const std::int64_t in_channels = x.dim(1) / attributes.groups;
    const std::int64_t plane = window.inputs();
    const std::int64_t positions = window.outputs();
    const std::int64_t rows = Times(group_channels, window.taps());
    Pace pace;
    for (std::int64_t i = 0; i < Times(out.dim(0), channels); ++i) {
      const T first = bias ? bias->data<T>()[i % channels] : T{0};
      if (!pace.Spend(1) || !pace.Fill(out.data<T>() + i * plane, plane, first)) return Stopped();
    }
    if (x.size() == 0) return Status();
    if (in_channels <= kFewInputs) return AddTaps(x, w.data<T>(), out, window);
    GemmScratch<T> scratch;
    T* columns = nullptr;
    if (Status s = Workspace(Times(rows, positions), &columns); !s.ok()) return s;
    for (std::int64_t i = 0; i < Times(x.dim(0), attributes.groups); ++i) {
      const T* weights = w.data<T>() + i % attributes.groups * in_channels * rows;
      const Matrix<T> left{weights, 1, rows};
      const Matrix<T> right{x.data<T>() + i * in_channels * positions, positions, 1};
      if (!pace.Fill(columns, Times(rows, positions), T{0})) return Stopped();
      Status s = Gemm<T>(rows, positions, in_channels, left, right, columns, positions, scratch);
      if (!s.ok()) return s;
      T* to = out.data<T>() + i * group_channels * plane;
      s = ParallelFor(group_channels, GrainOf(kGrain, window.taps(), positions),
                      [&](std::int64_t begin, std::int64_t end, Pace& of_thread) {
                        for (std::int64_t c = begin; c < end && !of_thread.stopped(); ++c)
                          AddWindows(window, columns + c * window.taps() * positions, to + c * plane,
                                     of_thread);
                      });
      if (!s.ok()) return s;
    }
    return Status();
  }

  // Groups of so few input channels (above all depthwise) are added tap by tap: a product of matrices would
  // mostly move memory.
  static constexpr std::int64_t kFewInputs = 2;
  template <typename T>
  Status AddTaps(TensorView x, const T* w, TensorView out, const Window& window) const {
    const std::int64_t channels = out.dim(1), of_group = channels / attributes.groups;
    const std::int64_t inputs = x.dim(1) / attributes.groups, taps = window.taps();
    const std::int64_t positions = window.outputs();
    return ParallelFor(Times(out.dim(0), channels), GrainOf(4 * kGrain, inputs, taps, positions),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (; begin < end; ++begin) {
                           const std::int64_t image = begin / channels, channel = begin % channels;
                           const std::int64_t first =
                               channel / of_group * inputs;  // input channel of the group
                           T* const to = out.data<T>() + begin * window.inputs();
                           for (std::int64_t c = first; c < first + inputs; ++c) {
                             const T* from = x.data<T>() + (image * x.dim(1) + c) * positions;
                             const T* factors = w + (c * of_group + channel % of_group) * taps;
                             for (std::int64_t tap = 0; tap < taps; ++tap) {
                               if (!AddTap(window, tap, factors[tap], from, to, pace)) return;
                             }
                           }
                         }
                       });
  }

  // Adds a plane of x times a weight where the window's tap lies in the result. Returns false if told to
  // stop.
  template <typename T>
  static bool AddTap(const Window& window, std::int64_t tap, T factor, const T* from, T* to, Pace& pace) {
    const WindowAxis &depth = window.axes[0], &rows = window.axes[1], &columns = window.axes[2];
    const std::int64_t kx = tap % columns.kernel, ky = tap / columns.kernel % rows.kernel;
    const std::int64_t kz = tap / columns.kernel / rows.kernel;
    std::int64_t z0, z1, y0, y1, first, last;
    depth.Reached(kz, &z0, &z1);
    rows.Reached(ky, &y0, &y1);
    columns.Reached(kx, &first, &last);
    for (; first < last; first += kPace) {
      const std::int64_t count = std::min(kPace, last - first);
      for (std::int64_t z = z0; z < z1; ++z) {
        const std::int64_t plane = (depth.start(z) + kz * depth.dilation) * rows.input;
        const bool done = pace.For(y1 - y0, 4 + count, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t y = y0 + begin, line = plane + rows.start(y) + ky * rows.dilation;
          WideLoop([=, lines = end - begin, next = rows.stride * columns.input, width = columns.output,
                    stride = columns.stride, x = from + (z * rows.output + y) * columns.output + first,
                    out = to + line * columns.input + columns.start(first) + kx * columns.dilation] {
            for (std::int64_t i = 0; i < lines; ++i) {
              const T* HWY_RESTRICT row = x + i * width;
              T* HWY_RESTRICT sums = out + i * next;
              if (stride == 1) {
                for (std::int64_t j = 0; j < count; ++j) sums[j] += factor * row[j];
              } else {
                for (std::int64_t j = 0; j < count; ++j) sums[j * stride] += factor * row[j];
              }
            }
          });
        });
        if (!done) return false;
      }
    }
    return pace.Spend(1);
  }
};

struct ConvTransposeShape {
  static constexpr const char* kName = names::kShapeConvTranspose;
  ConvTransposeAttributes attributes;
  static Status Make(Attributes& given, ConvTransposeShape* conv) { return conv->attributes.Read(given); }
  Status operator()(TensorView x, TensorView w, TensorView out) const {
    return WriteConvShape(attributes, x, w, out);
  }
};

// col2im: x [N, C * taps, positions] to [N, C, image...].
Status ResolveColumns(const WindowAttributes& attributes, ShapeView x, TensorView image_shape,
                      TensorView block_shape, Window* window, Dims* result) {
  Dims image, block;
  if (Status s = ReadShape("image_shape", image_shape, &image); !s.ok()) return s;
  if (Status s = ReadInts("block_shape", block_shape, &block); !s.ok()) return s;
  if (x.size() != 3) return ValueError("x has shape ", x, ", expected [N, C * block elements, blocks]");
  if (image.rank() + 2 > kMaxKernelRank)
    return ValueError("image_shape is ", image.view(), ", expected fewer axes");
  Dims full(ShapeView(x.data(), 2));
  for (std::int64_t dim : image.view()) full.push_back(dim);
  if (Status s = attributes.Resolve(full.view(), block.view(), window); !s.ok()) return s;
  if (x[2] != window->outputs() || x[1] % window->taps() != 0) {
    return ValueError("x has shape ", x, ", expected ", window->outputs(), " blocks of a multiple of ",
                      window->taps(), " elements");
  }
  *result = full;
  (*result)[1] = x[1] / window->taps();
  return Status();
}

struct Col2Im {
  static constexpr const char* kName = names::kCol2im;
  WindowAttributes attributes;
  static Status Make(Attributes& given, Col2Im* col2im) {
    col2im->attributes.Read(given, false, false);
    return col2im->attributes.Check();
  }
  Status operator()(TensorView x, TensorView image_shape, TensorView block_shape, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    Window window;
    Dims expected;
    if (Status s = ResolveColumns(attributes, x.dims(), image_shape, block_shape, &window, &expected);
        !s.ok())
      return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      const std::int64_t plane = window.inputs();
      const std::int64_t columns = Times(window.taps(), window.outputs());
      if (Status s = FillAll(out.data<T>(), out.size(), T{0}); !s.ok()) return s;
      return ParallelFor(Times(out.dim(0), out.dim(1)), GrainOf(kGrain, columns),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end && !pace.stopped(); ++i)
                             AddWindows(window, x.data<T>() + i * columns, out.data<T>() + i * plane, pace);
                         });
    });
  }
};

struct Col2ImShape {
  static constexpr const char* kName = names::kShapeCol2im;
  WindowAttributes attributes;
  static Status Make(Attributes& given, Col2ImShape* col2im) {
    col2im->attributes.Read(given, false, false);
    return col2im->attributes.Check();
  }
  Status operator()(TensorView x, TensorView image_shape, TensorView block_shape, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    Window window;
    if (Status s = ResolveColumns(attributes, input.view(), image_shape, block_shape, &window, &result);
        !s.ok())
      return s;
    return WriteShape(result, out);
  }
};

constexpr const char kTransposed[] =
    "group = 1, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, SAME_UPPER, SAME_LOWER or "
    "VALID, output_padding = zeros, output_shape = none (given, it decides the pads)";
constexpr const char kColumnAttributes[] =
    "strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET";

}  // namespace

std::span<const Kernel> ConvTransposeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ConvTranspose>(
          "x, w, bias? -> out", "f32 f64", kTransposed,
          "x [N, C, ...] with one to three spatial axes, weights [C, M / group, ...], plus "
          "bias [M]: what a convolution's gradient does"),
      Describe<ConvTransposeShape>("x, w -> out", "i64 i32; out i64", "as rewire.conv_transpose",
                                   "the shape of rewire.conv_transpose's out"),
      Describe<Col2Im>(
          "x, image_shape, block_shape -> out", "x, out f32 f64; others i64 i32", kColumnAttributes,
          "blocks [N, C * block elements, blocks] added up where they lie in the image [N, C, ...]"),
      Describe<Col2ImShape>("x, image_shape, block_shape -> out", "i64 i32; out i64", kColumnAttributes,
                            "the shape of rewire.col2im's out from x's shape and the two others themselves"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

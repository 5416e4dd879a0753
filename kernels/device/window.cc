// SPDX-License-Identifier: Apache-2.0
// What slides a window over images: convolutions and pools.
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/device/device_call.h"
#include "rewire/kernels/device/product_arguments.h"
#include "rewire/kernels/device/registry.h"
#include "rewire/kernels/device/window_arguments.h"

namespace rewire::kernel::device {
namespace {

struct Conv {
  static constexpr const char kName[] = "rewire.device.conv";
  cpu::ConvAttributes attributes;
  static Status Make(Attributes& given, Conv* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Beside("w", w, out).Real("x", x).SameDType("w", w, "x", x);
    checks.SameDType("out", out, "x", x);
    if (bias) checks.Beside("bias", *bias, out).SameDType("bias", *bias, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    cpu::Window window;
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), w.dims(), &window, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckWindow(window); !s.ok()) return s;
    if (bias) {
      const std::int64_t channels = out.dim(1);
      if (Status s = cpu::CheckShape("bias", *bias, ShapeView(&channels, 1)); !s.ok()) return s;
    }
    if (out.size() == 0) return Status();
    WindowArguments arguments = ConvolutionArguments(window, x.dims(), w.dims(), attributes.groups);
    arguments.has_bias = bias ? 1 : 0;
    // A tile of few channels would compute mostly nothing.
    constexpr int kLeastChannels = 8;
    if (arguments.out_channels < kLeastChannels) {
      Call call(out, Program::kWindow, RealForm(x), "direct_convolution");
      call.Tensor(x).Tensor(w).Optional(bias, w).Tensor(out).Value(arguments).Int(out.size());
      return call.Each(out.size());
    }
    Call call(out, Program::kProduct, RealForm(x), "convolution");
    call.Tensor(x).Tensor(w).Optional(bias, w).Tensor(out).Value(arguments);
    return RunTiles(call, arguments.out_channels, window.outputs(), cpu::Times(x.dim(0), attributes.groups));
  }
};

Status RunPool(const cpu::WindowAttributes& attributes, bool largest, bool counts_pads, TensorView x,
               TensorView out) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).Real("x", x).SameDType("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  cpu::Window window;
  if (Status s = attributes.Resolve(x.dims(), &window); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, window.OutputDims(x.dim(0), x.dim(1)).view()); !s.ok()) return s;
  if (Status s = CheckWindow(window); !s.ok()) return s;
  WindowArguments arguments = WindowArgumentsOf(window);
  arguments.counts_pads = counts_pads ? 1 : 0;
  Call call(out, Program::kWindow, RealForm(x), "pool");
  call.Tensor(x).Tensor(out).Value(arguments).Int(largest ? 1 : 0).Int(out.size());
  return call.Each(out.size());
}

struct MaxPool {
  static constexpr const char kName[] = "rewire.device.max_pool";
  cpu::WindowAttributes attributes;
  static Status Make(Attributes& given, MaxPool* pool) {
    pool->attributes.Read(given, true, true);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const { return RunPool(attributes, true, false, x, out); }
};

struct AveragePool {
  static constexpr const char kName[] = "rewire.device.avg_pool";
  cpu::WindowAttributes attributes;
  bool count_pad = false;
  static Status Make(Attributes& given, AveragePool* pool) {
    pool->attributes.Read(given, true, true);
    pool->count_pad = given.Bool("count_include_pad", false);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    return RunPool(attributes, false, count_pad, x, out);
  }
};

}  // namespace

std::span<const Kernel> WindowKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Conv>(
          "x, w, bias? -> out", "f32 f16",
          "group = 1, strides = ones, dilations = ones, pads = zeros (before each spatial axis, then after "
          "each), auto_pad = NOTSET, SAME_UPPER, SAME_LOWER or VALID",
          "x [N, C, ...] with one to three spatial axes, weights [M, C / group, ...], plus bias [M]"),
      Describe<MaxPool>(
          "x -> out", "f32 f16",
          "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, ceil_mode = "
          "0",
          "the largest element under each window of x [N, C, ...], NaN if one is"),
      Describe<AveragePool>(
          "x -> out", "f32 f16",
          "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
          "ceil_mode = 0, count_include_pad = 0",
          "the mean under each window of x [N, C, ...], of the elements on the image or with its "
          "pads"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

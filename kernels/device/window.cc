// SPDX-License-Identifier: Apache-2.0
// These kernels slide a window over images: convolutions and pools.
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/convolution/conv_transpose_attributes.h"
#include "rewire/kernels/cuda_libraries/convolution.h"
#include "rewire/kernels/cuda_libraries/libraries.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/product_arguments.h"
#include "rewire/kernels/device/registry.h"
#include "rewire/kernels/device/window_arguments.h"

namespace rewire::kernel::device {
namespace {

// The checks that both directions share. `attributes` resolves shapes as cpu::ConvAttributes does.
template <typename Resolver>
Status CheckConvolution(const Resolver& attributes, TensorView x, TensorView w,
                        const std::optional<TensorView>& bias, TensorView out, cpu::Window* window) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).Beside("w", w, out).Real("x", x).SameDType("w", w, "x", x);
  checks.SameDType("out", out, "x", x);
  if (bias) checks.Beside("bias", *bias, out).SameDType("bias", *bias, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  Dims expected;
  if (Status s = attributes.Resolve(x.dims(), w.dims(), window, &expected); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
  if (Status s = CheckWindow(*window); !s.ok()) return s;
  if (!bias) return Status();
  const std::int64_t channels = out.dim(1);
  return cpu::CheckShape("bias", *bias, ShapeView(&channels, 1));
}

// The convolution as cuDNN can do it. False if it cannot: a pad behind the image that is not the one before
// it would need other outputs.
bool ForCudnn(const WindowArguments& window, std::int64_t batch, int rank,
              cuda_libraries::Convolution* given) {
  given->spatial = rank == 5 ? 3 : 2;  // one axis is two, of which the first has size 1
  given->groups = window.groups;
  given->x[0] = given->y[0] = static_cast<int>(batch);
  given->x[1] = window.channels * window.groups;
  given->y[1] = given->w[0] = window.out_channels * window.groups;
  given->w[1] = window.channels;
  for (int i = 0; i < given->spatial; ++i) {
    const int axis = 3 - given->spatial + i;
    const std::int64_t reach = std::int64_t{window.size[axis] - 1} * window.dilation[axis] + 1;
    const std::int64_t room =
        std::int64_t{window.input[axis]} + 2 * std::int64_t{window.before[axis]} - reach;
    if (room < 0 || window.before[axis] < 0 || 1 + room / window.stride[axis] != window.output[axis])
      return false;
    given->x[2 + i] = window.input[axis];
    given->w[2 + i] = window.size[axis];
    given->y[2 + i] = window.output[axis];
    given->pads[i] = window.before[axis];
    given->strides[i] = window.stride[axis];
    given->dilations[i] = window.dilation[axis];
  }
  return true;
}

int TapsOf(const WindowArguments& window) { return window.size[0] * window.size[1] * window.size[2]; }

// Whether each output is made of the channels at its own position: then the image is a matrix as it lies.
bool IsProduct(const WindowArguments& window) {
  for (int i = 0; i < 3; ++i) {
    if (window.stride[i] != 1 || window.before[i] != 0 || window.input[i] != window.output[i]) return false;
  }
  return window.groups == 1 && TapsOf(window) == 1;
}

// Weights [M, C] by an image [C, positions] of each batch.
Status RunAsProduct(const WindowArguments& window, TensorView x, TensorView w,
                    const std::optional<TensorView>& bias, TensorView out) {
  ProductArguments product{};
  product.m = product.rows = window.out_channels;
  product.k = window.channels;
  product.n = window.input[0] * window.input[1] * window.input[2];
  product.a_row = product.k;
  product.b_row = product.n;
  product.a_column = product.b_column = 1;
  product.alpha = product.beta = 1;
  product.has_c = bias ? 1 : 0;
  product.c_row = 1;
  product.rank = 1;
  product.dims[0] = static_cast<int>(x.dim(0));
  product.b_batch[0] = product.k * product.n;
  return LaunchProduct(w, x, bias, out, product, x.dim(0));
}

struct Conv {
  static constexpr const char* kName = names::kOnDevice<names::kConv>;
  cpu::ConvAttributes attributes;
  static Status Make(Attributes& given, Conv* conv) { return conv->attributes.Read(given); }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const {
    const DLTensor* w = sizes.Tensor(1, 2);
    const DLTensor* out = sizes.Tensor(-1);
    const auto product_from = [](const DLTensor* tensor, int first) {
      return cpu::Product(ShapeView(tensor->shape, static_cast<std::size_t>(tensor->ndim)), first,
                          tensor->ndim);
    };
    // Sizes that nobody knows may be large.
    const bool pays =
        w == nullptr || out == nullptr || cuda_libraries::CudnnPays(product_from(out, 0), product_from(w, 1));
    cuda_libraries::DeclareScratch(pays && cuda_libraries::CudnnMayWork(), sizes);
    return true;
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    cpu::Window window;
    if (Status s = CheckConvolution(attributes, x, w, bias, out, &window); !s.ok()) return s;
    if (out.size() == 0) return Status();
    WindowArguments arguments = ConvolutionArguments(window, x.dims(), w.dims(), attributes.groups);
    arguments.has_bias = bias ? 1 : 0;
    cuda_libraries::Convolution given;
    const bool has_depth = arguments.channels != 0 && x.size() != 0;
    const std::int64_t depth = std::int64_t{arguments.channels} * TapsOf(arguments);
    if (DeviceTypeOf(out.device()) == kDLCUDA && has_depth && cuda_libraries::CudnnPays(out.size(), depth) &&
        ForCudnn(arguments, x.dim(0), x.ndim(), &given)) {
      bool done = false;
      Status s = cuda_libraries::Convolve(given, x, w, bias, out, &done);
      if (!s.ok() || done) return s;
    }
    // A tile of few channels would compute mostly nothing.
    constexpr int kLeastChannels = 8;
    if (arguments.out_channels < kLeastChannels) {
      Call call(out, Program::kWindow, RealForm(x), "direct_convolution");
      call.Tensor(x).Tensor(w).Optional(bias, w).Tensor(out).Value(arguments).Int(out.size());
      return call.Each(out.size());
    }
    if (IsProduct(arguments)) return RunAsProduct(arguments, x, w, bias, out);
    const std::int64_t images = cpu::Times(x.dim(0), attributes.groups);
    const std::int64_t tile = TileFor(arguments.out_channels, window.outputs(), images);
    Call call(out, Program::kProduct, RealForm(x), tile == kSmallTile ? "small_convolution" : "convolution");
    call.Tensor(x).Tensor(w).Optional(bias, w).Tensor(out).Value(arguments);
    return RunTiles(call, tile, arguments.out_channels, window.outputs(), images);
  }
};

struct ConvTranspose {
  static constexpr const char* kName = names::kOnDevice<names::kConvTranspose>;
  cpu::ConvTransposeAttributes attributes;
  static Status Make(Attributes& given, ConvTranspose* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    cpu::Window window;
    if (Status s = CheckConvolution(attributes, x, w, bias, out, &window); !s.ok()) return s;
    WindowArguments arguments = WindowArgumentsOf(window);
    arguments.groups = static_cast<int>(attributes.groups);
    arguments.channels = static_cast<int>(x.dim(1) / attributes.groups);
    arguments.out_channels = static_cast<int>(w.dim(1));
    arguments.has_bias = bias ? 1 : 0;
    Call call(out, Program::kWindow, RealForm(x), "transposed_convolution");
    call.Tensor(x).Tensor(w).Optional(bias, w).Tensor(out).Value(arguments).Int(out.size());
    return call.Each(out.size());
  }
};

// The checks that pools share, but for the dtype of x.
Status CheckPool(const cpu::WindowAttributes& attributes, TensorView x, TensorView out,
                 WindowArguments* arguments) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  cpu::Window window;
  if (Status s = attributes.Resolve(x.dims(), &window); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, window.OutputDims(x.dim(0), x.dim(1)).view()); !s.ok()) return s;
  if (Status s = CheckWindow(window); !s.ok()) return s;
  *arguments = WindowArgumentsOf(window);
  return Status();
}

Status RunPool(TensorView x, TensorView out, const WindowArguments& window, bool largest) {
  Call call(out, Program::kWindow, RealForm(x), "pool");
  call.Tensor(x).Tensor(out).Value(window).Int(largest ? 1 : 0).Int(out.size());
  return call.Each(out.size());
}

struct MaxPool {
  static constexpr const char* kName = names::kOnDevice<names::kMaxPool>;
  cpu::WindowAttributes attributes;
  static Status Make(Attributes& given, MaxPool* pool) {
    pool->attributes.Read(given, true, true);
    contract::MaxPoolAttributes().Read(given);  // the order is that of indices, which are not given here
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    IntegerType type{};
    if (Status s = ElementTypeOf("x", x, kReals | kBytes, &type); !s.ok()) return s;
    WindowArguments window;
    if (Status s = CheckPool(attributes, x, out, &window); !s.ok()) return s;
    if (type == kTypeReal) return RunPool(x, out, window, true);
    Call call(out, Program::kWindow, Form::kF32, "byte_pool");
    call.Tensor(x).Tensor(out).Value(window).Int(type).Int(LeastOf(type)).Int(out.size());
    return call.Each(out.size());
  }
};

struct AveragePool : contract::AveragePoolAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kAvgPool>;
  cpu::WindowAttributes attributes;
  static Status Make(Attributes& given, AveragePool* pool) {
    pool->attributes.Read(given, true, true);
    pool->Read(given);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = DeviceChecks().Real("x", x).Take(); !s.ok()) return s;
    WindowArguments window;
    if (Status s = CheckPool(attributes, x, out, &window); !s.ok()) return s;
    window.counts_pads = count_pad ? 1 : 0;
    return RunPool(x, out, window, false);
  }
};

}  // namespace

std::span<const Kernel> WindowKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Conv>(
          "x, w, bias? -> out", "f32 f16",
          "group = 1, strides = ones, dilations = ones, pads = zeros (before each spatial axis, then after "
          "each), auto_pad = NOTSET, SAME_UPPER, SAME_LOWER or VALID",
          "x [N, C, ...] with one to three spatial axes, weights [M, C / group, ...], plus bias [M]",
          REWIRE_KERNEL_DEVICE_WORKSPACE),
      Describe<ConvTranspose>(
          "x, w, bias? -> out", "f32 f16",
          "as rewire.device.conv, and output_padding = zeros, output_shape = none (given, it decides the "
          "pads)",
          "x [N, C, ...] with one to three spatial axes, weights [C, M / group, ...], plus "
          "bias [M]: what a convolution's gradient does"),
      Describe<MaxPool>(
          "x -> out", "f32 f16 i8 u8",
          "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, ceil_mode = 0, "
          "storage_order = 0",
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

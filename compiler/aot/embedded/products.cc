// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of floats.
#include <fmt/format.h>

#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/embedded/window.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/product_attributes.h"

namespace rewire::aot {
namespace {

// A packed convolution with this content of its struct behind the images and channels.
std::string PackedConvCall(EmbeddedCall& call, const std::string& content) {
  const std::string sizes =
      call.definitions().Struct("packed_conv", fmt::format("{{{}, {}}}", content, call.Activation()));
  return fmt::format("rewire_embedded_packed_conv_f32(&{}, {}, {}, {}, {}, {});", sizes, call.Input(0),
                     call.Input(1), call.Input(2), call.Input(3), call.Output());
}

Result<std::string> PackedMatmul(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const Dims& x = call.InputDims(0);
  const std::int64_t rows = Product(x, 0, x.size() - 1);
  const std::int64_t columns = call.attributes.Int("columns", 0);
  // A convolution under a window of one position takes no further code where the program has others.
  if (call.Imports(names::kPackedConv)) {
    return PackedConvCall(call, fmt::format("{}, {}, {}, {}", rows, x.back(), columns, kOnePosition));
  }
  const std::string sizes = call.definitions().Struct(
      "packed_matmul", fmt::format("{{{}, {}, {}, {}}}", rows, x.back(), columns, call.Activation()));
  return fmt::format("rewire_embedded_packed_matmul_f32(&{}, {}, {}, {}, {}, {});", sizes, call.Input(0),
                     call.Input(1), call.Input(2), call.Input(3), call.Output());
}

Result<std::string> PackedConv(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const ImageAxes x = AxesOf(call.InputDims(0), true);
  const ImageAxes out = AxesOf(call.OutputDims(), true);
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial);
  if (!window) return Forward(window);
  return PackedConvCall(call,
                        fmt::format("{}, {}, {}, {}", x.images, x.channels, out.channels, window->axes()));
}

Result<std::string> PackedDepthwise(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const ImageAxes x = AxesOf(call.InputDims(0), true);
  const Result<Window> window = WindowOf(call, x.spatial, AxesOf(call.OutputDims(), true).spatial);
  if (!window) return Forward(window);
  const std::string sizes = call.definitions().Struct(
      "packed_depthwise",
      fmt::format("{{{}, {}, {}, {}, {}}}", x.images, x.channels, call.attributes.Int("multiplier", 1),
                  window->axes(), call.Activation()));
  return fmt::format("rewire_embedded_packed_depthwise_f32(&{}, {}, {}, {}, {});", sizes, call.Input(0),
                     call.Input(1), call.Input(2), call.Output());
}

Result<std::string> PackedSeparable(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const ImageAxes x = AxesOf(call.InputDims(0), true);
  const ImageAxes out = AxesOf(call.OutputDims(), true);
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial);
  if (!window) return Forward(window);
  const std::string sizes = call.definitions().Struct(
      "packed_separable", fmt::format("{{{}, {}, {}, {}, {}, {}}}", x.images, x.channels, out.channels,
                                      window->axes(), call.Activation("depthwise_"), call.Activation()));
  return fmt::format("rewire_embedded_packed_separable_f32(&{}, {}, {}, {}, {}, {}, {}, (float *)({}), {});",
                     sizes, call.Input(0), call.Input(1), call.Input(2), call.Input(3), call.Input(4),
                     call.Input(5), call.Workspace(), call.Output());
}

std::uint64_t SeparableWorkspace(const EmbeddedCall& call) {
  return static_cast<std::uint64_t>(call.InputDims(0).back()) * sizeof(float);
}

Result<std::string> Conv(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const ImageAxes x = AxesOf(call.InputDims(0), false);
  const ImageAxes out = AxesOf(call.OutputDims(), false);
  const Dims& w = call.InputDims(1);
  if (w.size() < 3) return call.Refuse("its weights have no window");
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial, Dims(w.begin() + 2, w.end()));
  if (!window) return Forward(window);
  const std::string sizes = call.definitions().Struct(
      "conv", fmt::format("{{{}, {}, {}, {}, {}}}", x.images, x.channels, out.channels,
                          call.attributes.Int("group", 1), window->axes()));
  return fmt::format("rewire_embedded_conv_f32(&{}, {}, {}, {}, {});", sizes, call.Input(0), call.Input(1),
                     call.Input(2), call.Output());
}

// Steps of a matrix [rows, columns] that is given, maybe transposed.
std::string Steps(bool is_transposed, std::int64_t rows, std::int64_t columns) {
  return is_transposed ? fmt::format("1, {}", rows) : fmt::format("{}, 1", columns);
}

Result<std::string> Gemm(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const auto given = call.Read<contract::GemmAttributes>();
  const bool left = given.transpose_a, right = given.transpose_b;
  const Dims& out = call.OutputDims();
  const std::int64_t m = out[0];
  const std::int64_t n = out[1];
  const std::int64_t k = call.InputDims(0)[left ? 0 : 1];
  // c is broadcast to [m, n].
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  if (call.Has(2) && !call.InputDims(2).empty()) {
    const Dims& c = call.InputDims(2);
    c_column = c.back() == 1 ? 0 : 1;
    c_row = c.size() < 2 || c[c.size() - 2] == 1 ? 0 : c.back();
  }
  const std::string sizes =
      call.definitions().Struct("gemm", fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}}}", m, n, k,
                                                    Steps(left, m, k), Steps(right, k, n), c_row, c_column,
                                                    FloatText(given.alpha), FloatText(given.beta)));
  return fmt::format("rewire_embedded_gemm_f32(&{}, {}, {}, {}, {});", sizes, call.Input(0), call.Input(1),
                     call.Input(2), call.Output());
}

Result<std::string> Dense(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const Dims& x = call.InputDims(0);
  const std::int64_t m = Product(x, 0, x.size() - 1);
  const std::int64_t n = call.OutputDims().back();
  const bool is_transposed = call.attributes.Int("transpose_w", 1) != 0;
  const std::string sizes = call.definitions().Struct(
      "gemm", fmt::format("{{{}, {}, {}, {}, {}, 0, 1, 1.0f, 1.0f}}", m, n, x.back(),
                          Steps(false, m, x.back()), Steps(is_transposed, x.back(), n)));
  return fmt::format("rewire_embedded_gemm_f32(&{}, {}, {}, {}, {});", sizes, call.Input(0), call.Input(1),
                     call.Input(2), call.Output());
}

// Products of matrices side by side: the leading dimensions are equal, or b has none.
Result<std::string> Matmul(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const Dims& a = call.InputDims(0);
  const Dims& b = call.InputDims(1);
  if (a.size() < 2 || b.size() < 2) return call.Refuse("an input is a vector");
  const std::int64_t k = a.back();
  const std::int64_t n = b.back();
  std::int64_t m = a[a.size() - 2];
  std::int64_t products = Product(a, 0, a.size() - 2);
  if (Product(b, 0, b.size() - 2) == 1) {
    m *= products;
    products = 1;
  } else if (Dims(a.begin(), a.end() - 2) != Dims(b.begin(), b.end() - 2)) {
    return call.Refuse("its leading dimensions are broadcast");
  }
  const std::string sizes = call.definitions().Struct(
      "gemm", fmt::format("{{{}, {}, {}, {}, 1, {}, 1, 0, 0, 1.0f, 1.0f}}", m, n, k, k, n));
  if (products == 1) {
    return fmt::format("rewire_embedded_gemm_f32(&{}, {}, {}, 0, {});", sizes, call.Input(0), call.Input(1),
                       call.Output());
  }
  return fmt::format(
      "for (int32_t i = 0; i < {}; ++i) {{\n"
      "    rewire_embedded_gemm_f32(&{}, {} + i * {}, {} + i * {}, 0, {} + i * {});\n  }}",
      products, sizes, call.Input(0), m * k, call.Input(1), k * n, call.Output(), m * n);
}

constexpr EmbeddedKernel kProductKernels[] = {
    {names::kPackedMatMul, 2, 1, PackedMatmul},
    {names::kPackedConv, 2, 3, PackedConv},
    {names::kPackedDepthwise, 2, 3, PackedDepthwise},
    {names::kPackedSeparable, 4, 3, PackedSeparable, SeparableWorkspace},
    {names::kConv, 2, 3, Conv},
    {names::kGemm, 2, 2, Gemm},
    {names::kDense, 2, 1, Dense},
    {names::kMatMul, 2, 1, Matmul},
};

}  // namespace

std::span<const EmbeddedKernel> ProductKernels() { return kProductKernels; }

}  // namespace rewire::aot

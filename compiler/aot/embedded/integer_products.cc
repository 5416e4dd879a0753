// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of bytes.
#include <fmt/format.h>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/embedded/window.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::aot {
namespace {

// The places of the arguments of all integer products.
enum Argument : std::size_t { kX, kW, kSums, kXZero, kWZero, kScale, kBias };

// The content of a struct rewire_embedded_integer_finish.
Result<std::string> Finish(EmbeddedCall& call) {
  const DLDataType out = call.OutputValue().dtype;
  const bool is_signed = out == kInt8;
  if (out != kInt32 && out != kFloat32 && out != kInt8 && out != kUInt8) {
    return call.Refuse(fmt::format("its output is {}", TensorText(call.OutputValue())));
  }
  const DLDataType x = call.InputValue(kX).dtype;
  const std::int64_t least = is_signed ? -128 : 0;
  const auto is_for_each = [&](std::size_t input) {
    return call.Has(input) && ElementsOf(call.InputDims(input)) > 1 ? 1 : 0;
  };
  const auto number = [&](const char* name, std::int64_t otherwise) {
    return FloatText(static_cast<double>(call.attributes.Int(name, otherwise)));
  };
  return fmt::format("{{rewire_embedded_store_{}, {}, {}, {}, {}, {}, {}, {}}}", DTypeName(out),
                     x == kInt8 ? 1 : 0, is_for_each(kWZero), is_for_each(kScale), call.Activation(),
                     number("zero", 0), number("least", least), number("most", least + 255));
}

// All arguments but p, workspace and out.
std::string Operands(const EmbeddedCall& call) {
  const bool is_whole = call.Has(kBias) && call.InputValue(kBias).dtype == kInt32;
  return fmt::format("{}, {}, {}, {}, {}, {}, {}", call.Input(kX), call.Input(kW), call.Input(kXZero),
                     call.Input(kWZero), call.Input(kScale), is_whole ? call.Input(kBias) : "0",
                     is_whole ? "0" : call.Input(kBias));
}

std::uint64_t IntegerWorkspace(const EmbeddedCall& call) {
  const Dims& w = call.InputDims(kW);
  return w.empty() ? 0 : 2 * static_cast<std::uint64_t>(w.back());
}

std::string ConvolutionCall(EmbeddedCall& call, const std::string& content) {
  return fmt::format("rewire_embedded_packed_conv_integer_bytes(&{}, {}, {}, {});",
                     call.definitions().Struct("packed_conv_integer", "{" + content + "}"), Operands(call),
                     call.Workspace(), call.Output());
}

Result<std::string> MatmulInteger(EmbeddedCall& call) {
  const Result<std::string> finish = Finish(call);
  if (!finish) return finish;
  const Dims& x = call.InputDims(kX);
  const std::int64_t rows = Product(x, 0, x.size() - 1);
  const std::int64_t columns = call.attributes.Int("columns", 0);
  // A convolution under a window of one position takes no further code where the program has others.
  if (call.Imports(names::kPackedConvInteger)) {
    return ConvolutionCall(call,
                           fmt::format("{}, {}, {}, {}, {}", rows, x.back(), columns, kOnePosition, *finish));
  }
  const std::string sizes = call.definitions().Struct(
      "packed_matmul_integer", fmt::format("{{{}, {}, {}, {}}}", rows, x.back(), columns, *finish));
  return fmt::format("rewire_embedded_packed_matmul_integer_bytes(&{}, {}, {}, {});", sizes, Operands(call),
                     call.Workspace(), call.Output());
}

// The content of a struct rewire_embedded_packed_conv_integer.
Result<std::string> Convolution(EmbeddedCall& call) {
  const Result<std::string> finish = Finish(call);
  if (!finish) return finish;
  const ImageAxes x = AxesOf(call.InputDims(kX), true);
  const ImageAxes out = AxesOf(call.OutputDims(), true);
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial);
  if (!window) return Forward(window);
  return fmt::format("{}, {}, {}, {}, {}", x.images, x.channels, out.channels, window->axes(), *finish);
}

Result<std::string> ConvInteger(EmbeddedCall& call) {
  const Result<std::string> content = Convolution(call);
  if (!content) return content;
  return ConvolutionCall(call, *content);
}

Result<std::string> DepthwiseInteger(EmbeddedCall& call) {
  const Result<std::string> content = Convolution(call);
  if (!content) return content;
  return fmt::format("rewire_embedded_packed_depthwise_integer_bytes(&{}, {}, {});",
                     call.definitions().Struct("packed_conv_integer", "{" + *content + "}"), Operands(call),
                     call.Output());
}

std::int64_t BytesOf(const Value& value, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(ElementBytes(value.dtype));
}

std::optional<std::uint64_t> LeadOfProduct(const EmbeddedCall& call) {
  const Dims& x = call.InputDims(kX);
  return LeadOfRows(Product(x, 0, x.size() - 1), BytesOf(call.InputValue(kX), x.back()),
                    BytesOf(call.OutputValue(), call.OutputDims().back()));
}

std::optional<std::uint64_t> LeadOfConvolution(const EmbeddedCall& call) {
  const ImageAxes x = AxesOf(call.InputDims(kX), true), out = AxesOf(call.OutputDims(), true);
  const Result<Window> window = WindowOf(call, x.spatial, out.spatial);
  if (!window) return std::nullopt;
  return LeadUnder(*window, {x.images, x.spatial, BytesOf(call.InputValue(kX), x.channels)},
                   {out.images, out.spatial, BytesOf(call.OutputValue(), out.channels)});
}

// It goes channel by channel.
std::optional<std::uint64_t> LeadOfDepthwise(const EmbeddedCall& call) {
  const bool are_bytes = ElementBytes(call.OutputValue().dtype) == 1;
  return are_bytes ? LeadOfConvolution(call) : std::nullopt;
}

constexpr EmbeddedKernel kIntegerProductKernels[] = {
    {names::kPackedMatMulInteger, 3, 1, MatmulInteger, IntegerWorkspace, LeadOfProduct, kSums},
    {names::kPackedConvInteger, 3, 3, ConvInteger, IntegerWorkspace, LeadOfConvolution, kSums},
    {names::kPackedDepthwiseInteger, 3, 3, DepthwiseInteger, nullptr, LeadOfDepthwise, kSums},
};

}  // namespace

std::span<const EmbeddedKernel> IntegerProductKernels() { return kIntegerProductKernels; }

}  // namespace rewire::aot

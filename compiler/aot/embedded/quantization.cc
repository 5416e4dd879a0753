// SPDX-License-Identifier: Apache-2.0
// Between floats and bytes, by scale and zero point.
#include <fmt/format.h>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::aot {
namespace {

// rewire.quantize_linear and rewire.dequantize_linear, between f32 and `bytes`.
Result<std::string> Linear(EmbeddedCall& call, const Value& bytes) {
  if (bytes.dtype != kInt8 && bytes.dtype != kUInt8) {
    return call.Refuse(fmt::format("its integers are {}", DTypeName(bytes.dtype)));
  }
  const auto given = call.Read<contract::ScaleAttributes>();
  if (given.block_size != 0) return call.Refuse("its scales are those of blocks");
  const Dims& x = call.InputDims(0);
  Dims view = {1, 1, Product(x)};
  if (Product(call.InputDims(1)) != 1) {
    const Result<std::size_t> axis = call.Axis(given.axis, x.size());
    if (!axis) return Forward(axis);
    view = {Product(x, 0, *axis), x[*axis], Product(x, *axis + 1, x.size())};
  }
  return fmt::format("rewire_embedded_{}_{}(&{}, {}, {}, {}, {});", names::Stem(call.name()),
                     DTypeName(bytes.dtype), call.definitions().Struct("along", Braced(view)), call.Input(0),
                     call.Input(1), call.Input(2), call.Output());
}
Result<std::string> Quantize(EmbeddedCall& call) {
  if (Status need = call.NeedInput(0, kFloat32); !need) return need;
  return Linear(call, call.OutputValue());
}
Result<std::string> Dequantize(EmbeddedCall& call) {
  if (Status need = call.NeedOutput(kFloat32); !need) return need;
  return Linear(call, call.InputValue(0));
}

Result<std::string> AddQuantized(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  if (dtype != kInt8 && dtype != kUInt8) {
    return call.Refuse(fmt::format("its output is {}", TensorText(call.OutputValue())));
  }
  const std::int64_t least = dtype == kInt8 ? -128 : 0;
  const auto number = [&](const char* name, double otherwise) {
    return FloatText(call.attributes.Float(name, otherwise));
  };
  const std::string sizes = call.definitions().Struct(
      "add_quantized", fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}}}", Product(call.OutputDims()),
                                   number("a_scale", 1), number("b_scale", 1), number("scale", 1),
                                   call.attributes.Int("a_zero", 0), call.attributes.Int("b_zero", 0),
                                   number("zero", 0), number("least", static_cast<double>(least)),
                                   number("most", static_cast<double>(least + 255))));
  return fmt::format("rewire_embedded_add_quantized_{}(&{}, {}, {}, {});", DTypeName(dtype), sizes,
                     call.Input(0), call.Input(1), call.Output());
}

Result<std::string> MapBytes(EmbeddedCall& call) {
  return fmt::format("rewire_embedded_map_bytes({}, {}, {}, {});", Product(call.OutputDims()), call.Input(0),
                     call.Input(1), call.Output());
}

constexpr EmbeddedKernel kQuantizationKernels[] = {
    {names::kQuantizeLinear, 2, 0, Quantize},
    {names::kDequantizeLinear, 2, 0, Dequantize},
    {names::kAddQuantized, 2, 0, AddQuantized},
    {names::kMapBytes, 2, 0, MapBytes},
};

}  // namespace

std::span<const EmbeddedKernel> QuantizationKernels() { return kQuantizationKernels; }

}  // namespace rewire::aot

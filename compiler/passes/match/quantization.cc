// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/quantization.h"

#include <algorithm>
#include <cmath>

namespace rewire::compiler {

std::optional<std::int64_t> ByteOf(const Value* value) {
  const HostTensor* elements =
      value != nullptr && value->IsConstant() && IsByte(value) ? ElementsOf(value) : nullptr;
  if (elements == nullptr || elements->bytes.view.size() != 1) return std::nullopt;
  const auto byte = static_cast<std::uint8_t>(elements->bytes.view[0]);
  return value->type.dtype == kInt8 ? std::int64_t{static_cast<std::int8_t>(byte)} : std::int64_t{byte};
}

std::optional<Quantization> QuantizationOf(const Node& node) {
  const bool from_floats = node.kernel == names::kQuantizeLinear;
  if (!from_floats && node.kernel != names::kDequantizeLinear) return std::nullopt;
  if (!IsByte(from_floats ? node.outputs[0] : node.inputs[0])) return std::nullopt;
  const std::optional<float> scale = ScalarOf(node.inputs[1]);
  if (!scale || !(*scale > 0) || !std::isfinite(*scale)) return std::nullopt;
  if (node.inputs.size() < 3) return Quantization{*scale, 0};
  const std::optional<std::int64_t> zero = ByteOf(node.inputs[2]);
  if (!zero) return std::nullopt;
  return Quantization{*scale, *zero};
}

std::optional<StoredRange> StoredRangeOf(const Node& activation, const Quantization& by, DLDataType dtype) {
  const auto stored = [&](double value) {
    const double rounded = std::nearbyint(value / by.scale) + static_cast<double>(by.zero);
    const bool is_unsigned = dtype == kUInt8;
    return static_cast<std::int64_t>(
        std::clamp(rounded, is_unsigned ? 0.0 : -128.0, is_unsigned ? 255.0 : 127.0));
  };
  if (activation.kernel == names::kRelu) return StoredRange{stored(0), std::nullopt};
  if (activation.kernel == names::kClip && FindAttribute(activation, "min") != nullptr &&
      FindAttribute(activation, "max") != nullptr) {
    const double min = FloatAttribute(activation, "min", 0), max = FloatAttribute(activation, "max", 0);
    if (std::isnan(min) || std::isnan(max)) return std::nullopt;   // such a bound is none
    return StoredRange{stored(std::fmin(min, max)), stored(max)};  // where min is above max, all is max
  }
  return std::nullopt;
}

}  // namespace rewire::compiler

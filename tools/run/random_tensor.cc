// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/random_tensor.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/measure/resident.h"
#include "rewire/tools/run/compare.h"

namespace rewire::tools {
namespace {

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

Status RandomTensors::SetRange(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.find(':');
  if (equals != std::string_view::npos && colon != std::string_view::npos && equals < colon) {
    const std::optional<DLDataType> dtype = ParseDType(text.substr(0, equals));
    const std::optional<double> low = ParseNumber(text.substr(equals + 1, colon - equals - 1));
    const std::optional<double> high = ParseNumber(text.substr(colon + 1));
    // Whole numbers up to 2^53 are exact in a double; that is range enough for random integers.
    constexpr double kLargest = 9007199254740992.0;
    if (dtype && low && high && *low <= *high && std::fabs(*low) <= kLargest &&
        std::fabs(*high) <= kLargest) {
      ranges_.push_back({*dtype, *low, *high});
      return {};
    }
  }
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("'{}' is no range: expected DTYPE=LOW:HIGH, such as f32=-1:1", text));
}

RandomTensors::Range RandomTensors::RangeOf(DLDataType dtype) const {
  for (std::size_t i = ranges_.size(); i-- > 0;) {
    if (ranges_[i].dtype == dtype) return ranges_[i];
  }
  if (dtype.code == kBool) return {dtype, 0, 1};
  if (IsFloat(dtype)) return {dtype, -1, 1};
  return {dtype, 0, 9};
}

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t RandomTensors::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double RandomTensors::NextUnit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

Result<HostTensor> RandomTensors::Make(DLDataType dtype, Span<const std::int64_t> shape) {
  if (!text::HasElementText(dtype)) {
    return Fail(StatusCode::kUnsupported, "no random elements of dtype " + DTypeName(dtype) + "; use a file");
  }
  const Result<std::uint64_t> bytes = CompactBytes(dtype, shape);
  if (!bytes) return Forward(bytes);
  if (Status fits = CheckMachineHas(*bytes); !fits) return Forward(fits);
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape.assign(shape.begin(), shape.end());
  std::byte* data = nullptr;
  tensor.bytes = AllocateBytes(static_cast<std::size_t>(*bytes), &data);
  const Range range = RangeOf(dtype);
  const std::size_t step = ElementBytes(dtype);
  for (std::byte* element = data; element != data + *bytes; element += step) {
    if (IsFloat(dtype)) {
      text::StoreElementValue(dtype, range.low + (range.high - range.low) * NextUnit(), element);
    } else {
      const double value = range.low + std::floor((range.high - range.low + 1) * NextUnit());
      const auto integer = static_cast<std::int64_t>(value);
      std::memcpy(element, &integer, step);
    }
  }
  return tensor;
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"

namespace rewire::tools {
namespace {

template <typename T>
T Load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename T>
double Difference(T given, T expected) {
  if constexpr (std::is_floating_point_v<T>) {
    if (given == expected || (std::isnan(given) && std::isnan(expected))) return 0;
    const double difference = std::fabs(static_cast<double>(given) - static_cast<double>(expected));
    return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  } else {
    // In unsigned arithmetic the difference of any two is exact.
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const Wide high = std::max(given, expected);
    const Wide low = std::min(given, expected);
    return static_cast<double>(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  }
}

struct Scan {
  std::int64_t different = 0;
  std::int64_t worst = 0;
  double difference = 0;
  double relative = 0;
};

// `read` gives the element at an address.
template <typename Read>
Scan ScanElements(const HostTensor& given, const HostTensor& expected, const Tolerance& tolerance,
                  const Read& read) {
  Scan scan;
  const std::size_t step = ElementBytes(given.dtype);
  const std::size_t count = given.bytes.view.size() / step;
  bool worst_differs = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto wanted = read(expected.bytes.view.data() + i * step);
    const double difference = Difference(read(given.bytes.view.data() + i * step), wanted);
    const double magnitude = std::fabs(static_cast<double>(wanted));
    // An infinite expectation allows nothing but itself.
    const double allowed =
        std::isfinite(magnitude) ? tolerance.absolute + tolerance.relative * magnitude : 0.0;
    const bool differs = tolerance.bits ? std::memcmp(given.bytes.view.data() + i * step,
                                                      expected.bytes.view.data() + i * step, step) != 0
                                        : difference > 0 && !(difference <= allowed);
    if (differs) ++scan.different;
    if (magnitude > 0 && difference > scan.relative * magnitude) scan.relative = difference / magnitude;
    if (i == 0 || (differs && !worst_differs) || (differs == worst_differs && difference > scan.difference)) {
      scan.worst = static_cast<std::int64_t>(i);
      scan.difference = difference;
      worst_differs = differs;
    }
  }
  return scan;
}

Scan ScanByType(const HostTensor& given, const HostTensor& expected, const Tolerance& tolerance) {
  const auto scan = [&](auto read) { return ScanElements(given, expected, tolerance, read); };
  const DLDataType dtype = given.dtype;
  const bool is_signed = dtype.code == kInt;
  if (dtype == kFloat32) return scan(Load<float>);
  if (dtype == kFloat64) return scan(Load<double>);
  if (IsFloat(dtype)) {
    return scan([dtype](const std::byte* element) { return text::ElementValue(dtype, element); });
  }
  if (dtype.bits == 8) return is_signed ? scan(Load<std::int8_t>) : scan(Load<std::uint8_t>);
  if (dtype.bits == 16) return is_signed ? scan(Load<std::int16_t>) : scan(Load<std::uint16_t>);
  if (dtype.bits == 32) return is_signed ? scan(Load<std::int32_t>) : scan(Load<std::uint32_t>);
  return is_signed ? scan(Load<std::int64_t>) : scan(Load<std::uint64_t>);
}

std::vector<std::int64_t> IndexOf(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}

}  // namespace

double LargestMagnitude(const HostTensor& tensor) {
  if (!IsFloat(tensor.dtype) || !text::HasElementText(tensor.dtype)) return 0;
  const std::size_t step = ElementBytes(tensor.dtype);
  double largest = 0;
  for (std::size_t i = 0; i + step <= tensor.bytes.view.size(); i += step) {
    const double magnitude = std::fabs(text::ElementValue(tensor.dtype, tensor.bytes.view.data() + i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

Comparison Compare(const HostTensor& given, const HostTensor& expected, const Tolerance& tolerance) {
  Comparison comparison;
  if (given.dtype != expected.dtype || given.shape != expected.shape) {
    comparison.mismatch = fmt::format("{} given, {} expected", TensorTypeText(given.dtype, given.shape),
                                      TensorTypeText(expected.dtype, expected.shape));
    return comparison;
  }
  if (!text::HasElementText(given.dtype)) {
    const bool same =
        given.bytes.view.empty() ||
        std::memcmp(given.bytes.view.data(), expected.bytes.view.data(), given.bytes.view.size()) == 0;
    if (!same) comparison.mismatch = "elements of dtype " + DTypeName(given.dtype) + " differ in their bytes";
    return comparison;
  }
  const std::size_t step = ElementBytes(given.dtype);
  comparison.elements = static_cast<std::int64_t>(given.bytes.view.size() / step);
  if (comparison.elements == 0) return comparison;
  const Scan scan = ScanByType(given, expected, tolerance);
  comparison.different = scan.different;
  comparison.worst.index = IndexOf(scan.worst, given.shape);
  comparison.worst.difference = scan.difference;
  comparison.largest_relative = scan.relative;
  const std::size_t offset = static_cast<std::size_t>(scan.worst) * step;
  comparison.worst.given = text::ElementText(given.dtype, given.bytes.view.data() + offset);
  comparison.worst.expected = text::ElementText(given.dtype, expected.bytes.view.data() + offset);
  return comparison;
}

std::string ComparisonText(const Comparison& comparison, const std::string& expected_name) {
  if (!comparison.mismatch.empty()) {
    return fmt::format("differs from {}: {}", expected_name, comparison.mismatch);
  }
  const Comparison::Worst& worst = comparison.worst;
  const std::string index = fmt::format("[{}]", fmt::join(worst.index, ", "));
  if (comparison.different != 0) {
    return fmt::format(
        "differs from {} in {} of {} elements; worst at {}: expected {}, given {}, difference {:.6g}",
        expected_name, comparison.different, comparison.elements, index, worst.expected, worst.given,
        worst.difference);
  }
  if (worst.difference == 0) return "equals " + expected_name;
  return fmt::format("equals {} (largest difference {:.6g} at {})", expected_name, worst.difference, index);
}

}  // namespace rewire::tools

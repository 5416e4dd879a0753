// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/tensor_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/io/tensor_text.h"

namespace rewire::tools {
namespace {

constexpr std::int64_t kMostNumbers = 8;
constexpr std::size_t kMostParts = 16;

template <typename T>
double Number(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return static_cast<double>(value);
}

template <typename Read>
TensorSummary Scan(const HostTensor& tensor, std::size_t most_parts, const Read& read) {
  TensorSummary summary;
  const std::size_t step = ElementBytes(tensor.dtype);
  const std::size_t count = tensor.bytes.view.size() / step;
  const std::size_t parts = std::min(most_parts, count);
  double total = 0;
  std::size_t finite = 0;
  std::size_t next = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    // Sizes differ by one at most. The product of two counts in memory may exceed 64 bits, so it is not made.
    const std::size_t size = count / parts + (part < count % parts ? 1 : 0);
    double sum = 0;
    std::size_t summed = 0;
    for (const std::size_t end = next + size; next < end; ++next) {
      const double value = read(tensor.bytes.view.data() + next * step);
      if (std::isnan(value)) {
        ++summary.nans;
      } else if (std::isinf(value)) {
        ++summary.infinities;
      } else {
        summary.minimum = finite + summed == 0 ? value : std::min(summary.minimum, value);
        summary.maximum = finite + summed == 0 ? value : std::max(summary.maximum, value);
        sum += value;
        ++summed;
      }
    }
    summary.parts.push_back(summed == 0 ? std::numeric_limits<double>::quiet_NaN()
                                        : sum / static_cast<double>(summed));
    total += sum;
    finite += summed;
  }
  summary.count = static_cast<std::int64_t>(count);
  summary.mean = finite == 0 ? 0 : total / static_cast<double>(finite);
  return summary;
}

}  // namespace

bool HasNumbers(DLDataType dtype) { return text::HasElementText(dtype); }

TensorSummary Summarize(const HostTensor& tensor, std::size_t most_parts) {
  const auto scan = [&](auto read) { return Scan(tensor, most_parts, read); };
  const DLDataType dtype = tensor.dtype;
  if (dtype == kFloat32) return scan(Number<float>);
  if (dtype == kFloat64) return scan(Number<double>);
  if (dtype.code == kFloat || dtype.code == kBFloat) {
    return scan([dtype](const std::byte* element) { return text::ElementValue(dtype, element); });
  }
  const bool is_signed = dtype.code == kInt;
  switch (dtype.bits) {
    case 8:
      return is_signed ? scan(Number<std::int8_t>) : scan(Number<std::uint8_t>);
    case 16:
      return is_signed ? scan(Number<std::int16_t>) : scan(Number<std::uint16_t>);
    case 32:
      return is_signed ? scan(Number<std::int32_t>) : scan(Number<std::uint32_t>);
    default:
      return is_signed ? scan(Number<std::int64_t>) : scan(Number<std::uint64_t>);
  }
}

std::string Sparkline(const std::vector<double>& numbers, bool unicode) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  std::string text;
  for (const double number : numbers) {
    if (!std::isfinite(number)) {
      text += '!';
      continue;
    }
    // The halves: the difference of two finite numbers may be infinite.
    const double share = high > low ? (number / 2 - low / 2) / (high / 2 - low / 2) : 0;
    const auto level = std::min<std::size_t>(7, static_cast<std::size_t>(share * 8));
    text += unicode ? kBlocks[level] : kAscii[level];
  }
  return text;
}

std::string SummaryText(const HostTensor& tensor, bool unicode) {
  if (!HasNumbers(tensor.dtype)) return "";
  const auto count = static_cast<std::int64_t>(tensor.bytes.view.size() / ElementBytes(tensor.dtype));
  if (count <= kMostNumbers) {
    HostTensor flat = tensor;
    if (flat.shape.size() > 1) flat.shape = {count};
    return TensorText(flat);
  }
  const TensorSummary summary = Summarize(tensor, kMostParts);
  std::string text = fmt::format("{}  min {:.4g}  max {:.4g}  mean {:.4g}", Sparkline(summary.parts, unicode),
                                 summary.minimum, summary.maximum, summary.mean);
  if (summary.nans > 0) text += fmt::format("  nan {}", summary.nans);
  if (summary.infinities > 0) text += fmt::format("  inf {}", summary.infinities);
  return text;
}

}  // namespace rewire::tools

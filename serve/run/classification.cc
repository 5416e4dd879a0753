// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/classification.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

// Elements lie in the response or in a batch, where they are aligned to themselves.
template <typename T>
void AppendLargest(const std::byte* data, std::size_t width, std::size_t count, std::string* wire) {
  const auto* const elements = reinterpret_cast<const T*>(data);
  std::vector<std::size_t> order(width);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [elements](std::size_t a, std::size_t b) {
    const T x = elements[a], y = elements[b];
    if constexpr (std::is_floating_point_v<T>) {
      if ((x != x) != (y != y)) return y != y;
    }
    return x == y || x != x ? a < b : x > y;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), before);
  for (std::size_t i = 0; i < count; ++i) {
    char text[64];
    char* end = text;
    if constexpr (std::is_same_v<T, bool>) {
      *end++ = elements[order[i]] ? '1' : '0';
    } else if constexpr (std::is_integral_v<T>) {
      end = std::to_chars(text, text + sizeof text, std::int64_t{0} + elements[order[i]]).ptr;
    } else {
      end = std::to_chars(text, text + sizeof text, elements[order[i]]).ptr;
    }
    *end++ = ':';
    end = std::to_chars(end, text + sizeof text, order[i]).ptr;
    AppendWireText({text, static_cast<std::size_t>(end - text)}, wire);
  }
}

using Append = void (*)(const std::byte*, std::size_t, std::size_t, std::string*);

Append AppendOf(DLDataType dtype) {
  if (dtype == kFloat32) return &AppendLargest<float>;
  if (dtype == kFloat64) return &AppendLargest<double>;
  if (dtype == kInt64) return &AppendLargest<std::int64_t>;
  if (dtype == kInt32) return &AppendLargest<std::int32_t>;
  if (dtype == MakeDType(kInt, 16)) return &AppendLargest<std::int16_t>;
  if (dtype == kInt8) return &AppendLargest<std::int8_t>;
  if (dtype == kUInt8) return &AppendLargest<std::uint8_t>;
  if (dtype == MakeDType(kUInt, 16)) return &AppendLargest<std::uint16_t>;
  if (dtype == MakeDType(kUInt, 32)) return &AppendLargest<std::uint32_t>;
  if (dtype == kBool8) return &AppendLargest<bool>;
  return nullptr;
}

}  // namespace

Status Classify(std::uint32_t count, bool rows, Arena* memory, OutputTensor* tensor) {
  const Append append = AppendOf(tensor->dtype);
  if (append == nullptr) {
    return Fail(StatusCode::kUnsupported,
                "output '{}' has elements of {}, which 'classification' does not take: ask for the tensor",
                tensor->name, WireName(tensor->dtype));
  }
  const std::size_t elements = tensor->bytes / ElementBytes(tensor->dtype);
  const bool by_rows = rows && !tensor->shape.empty();
  const std::size_t lines = by_rows ? static_cast<std::size_t>(tensor->shape[0]) : 1;
  const std::size_t width = lines == 0 ? 0 : elements / lines;
  const std::size_t taken = std::min<std::size_t>(count, width);
  std::string wire;
  for (std::size_t line = 0; taken != 0 && line < lines; ++line) {  // rows of nothing may be any number
    append(tensor->data + line * width * ElementBytes(tensor->dtype), width, taken, &wire);
  }
  std::byte* const data = memory->Allocate(std::max<std::size_t>(wire.size(), 1));
  if (data == nullptr) {
    return Fail(StatusCode::kOutOfMemory, "output '{}': there is no memory for {} bytes", tensor->name,
                wire.size());
  }
  std::memcpy(data, wire.data(), wire.size());
  tensor->dtype = kWireText;
  tensor->shape.clear();
  if (by_rows) tensor->shape.push_back(static_cast<std::int64_t>(lines));
  tensor->shape.push_back(static_cast<std::int64_t>(taken));
  tensor->data = data;
  tensor->bytes = wire.size();
  return {};
}

}  // namespace rewire::serve

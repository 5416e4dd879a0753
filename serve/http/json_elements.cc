// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/json_elements.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/core/text_bytes.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;

Status WrongElements(std::string text) { return Fail(StatusCode::kInvalidArgument, std::move(text)); }

template <typename T>
bool ReadElement(element value, T* result) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.get(*result) == simdjson::SUCCESS) return true;
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number > 1) return false;
    *result = number != 0;
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    double number = 0;
    if (value.get(number) != simdjson::SUCCESS) return false;
    *result = static_cast<T>(number);
    return std::isfinite(*result);
  } else if constexpr (std::is_signed_v<T>) {
    std::int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) return false;
    *result = static_cast<T>(number);
    return *result == number;
  } else {
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) return false;
    *result = static_cast<T>(number);
    return *result == number;
  }
}

// The elements of a list, whose lists inside stand for rows; or one element.
template <typename T>
class ElementReader {
 public:
  ElementReader(std::byte* data, std::uint64_t count) : data_(data), count_(count) {}
  // The parser limits the depth.
  bool Read(element value) {
    if (value.type() == element_type::ARRAY) {
      const array list = value.get_array().value_unsafe();
      for (const element inner : list) {
        if (!Read(inner)) return false;
      }
      return true;
    }
    T result{};
    if (used_ == count_ || !ReadElement(value, &result)) {
      wrong_ = used_ != count_;
      ++used_;
      return false;
    }
    std::memcpy(data_ + used_ * sizeof(T), &result, sizeof(T));
    ++used_;
    return true;
  }
  bool wrong() const { return wrong_; }
  std::uint64_t used() const { return used_; }

 private:
  std::byte* data_;
  std::uint64_t count_;
  std::uint64_t used_ = 0;
  bool wrong_ = false;
};

template <typename T>
Status ReadElements(const std::string& where, element data, std::byte* memory, std::uint64_t count,
                    DLDataType dtype) {
  ElementReader<T> reader(memory, count);
  const bool all = reader.Read(data);
  if (reader.wrong()) {
    return WrongElements(where + ": element " + std::to_string(reader.used() - 1) + " of 'data' is no " +
                         std::string(WireName(dtype)));
  }
  if (!all || reader.used() != count) {
    return WrongElements(where + ": 'data' has " + (all ? std::to_string(reader.used()) : "more") +
                         " elements, and the shape " + std::to_string(count));
  }
  return {};
}

// The texts of a list, whose lists inside stand for rows, in the form of BYTES. The parser limits the depth.
bool AppendTexts(element value, std::string* wire) {
  if (value.type() == element_type::ARRAY) {
    const array list = value.get_array().value_unsafe();
    for (const element inner : list) {
      if (!AppendTexts(inner, wire)) return false;
    }
    return true;
  }
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return false;
  AppendWireText(text, wire);
  return true;
}

Status ReadTexts(const std::string& where, element data, Request* request, InputTensor* input) {
  std::string wire;
  if (!AppendTexts(data, &wire)) return WrongElements(where + ": an element of 'data' is no text");
  const std::string_view kept = KeptText(wire, request);
  if (kept.size() != wire.size())
    return Fail(StatusCode::kOutOfMemory, where + ": there is no memory for its elements");
  input->data = AsBytes(kept);
  return {};
}

}  // namespace

std::string_view KeptText(std::string_view text, Request* request) {
  std::byte* const copy = request->memory.Allocate(text.size() + 1);
  if (copy == nullptr) return {};
  std::memcpy(copy, text.data(), text.size());
  return {reinterpret_cast<const char*>(copy), text.size()};
}

Status ReadJsonElements(const std::string& where, element data, std::size_t most_elements, Request* request,
                        InputTensor* input) {
  if (input->dtype == kWireText) return ReadTexts(where, data, request, input);
  const std::optional<std::uint64_t> elements = ShapeProduct(input->shape);
  const DLDataType dtype = input->dtype;
  // Each element takes at least a byte of JSON, so memory follows what has arrived.
  if (!elements || *elements > most_elements) {
    return WrongElements(where + ": 'data' has fewer elements than the shape");
  }
  const std::uint64_t count = *elements;
  const std::size_t bytes = static_cast<std::size_t>(count * ElementBytes(dtype));
  std::byte* const memory = request->memory.Allocate(bytes + 1);
  if (memory == nullptr)
    return Fail(StatusCode::kOutOfMemory, where + ": there is no memory for its elements");
  input->data = {memory, bytes};
  if (dtype == kFloat32) return ReadElements<float>(where, data, memory, count, dtype);
  if (dtype == kFloat64) return ReadElements<double>(where, data, memory, count, dtype);
  if (dtype == kInt64) return ReadElements<std::int64_t>(where, data, memory, count, dtype);
  if (dtype == kInt32) return ReadElements<std::int32_t>(where, data, memory, count, dtype);
  if (dtype == MakeDType(kInt, 16)) return ReadElements<std::int16_t>(where, data, memory, count, dtype);
  if (dtype == kInt8) return ReadElements<std::int8_t>(where, data, memory, count, dtype);
  if (dtype == kUInt8) return ReadElements<std::uint8_t>(where, data, memory, count, dtype);
  if (dtype == MakeDType(kUInt, 16)) return ReadElements<std::uint16_t>(where, data, memory, count, dtype);
  if (dtype == MakeDType(kUInt, 32)) return ReadElements<std::uint32_t>(where, data, memory, count, dtype);
  if (dtype == MakeDType(kUInt, 64)) return ReadElements<std::uint64_t>(where, data, memory, count, dtype);
  if (dtype == kBool8) return ReadElements<bool>(where, data, memory, count, dtype);
  return Fail(StatusCode::kUnsupported,
              where + ": JSON has no form of " + std::string(WireName(dtype)) + ": send it as binary data");
}

}  // namespace rewire::serve

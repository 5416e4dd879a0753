// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "rewire/base/utf8.h"
#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

template <typename T>
void AppendNumber(T value, std::string* text) {
  char digits[32];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Bytes that stand for themselves between quotes.
constexpr std::array<bool, 256> kIsPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

// False for a float that is no number.
template <typename T>
bool AppendElements(const OutputTensor& tensor, std::string* text) {
  const std::size_t count = tensor.bytes / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, tensor.data + i * sizeof(T), sizeof(T));
    if (i > 0) *text += ',';
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) return false;
    }
    if constexpr (std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>) {
      AppendNumber(static_cast<int>(value), text);
    } else {
      AppendNumber(value, text);
    }
  }
  return true;
}

}  // namespace

void JsonText::Comma() {
  if (!first_) *text_ += ',';
  first_ = false;
}

JsonText& JsonText::Begin(char bracket) {
  Comma();
  *text_ += bracket;
  first_ = true;
  return *this;
}

JsonText& JsonText::End(char bracket) {
  *text_ += bracket;
  first_ = false;
  return *this;
}

JsonText& JsonText::Key(std::string_view key) {
  String(key);
  *text_ += ':';
  first_ = true;
  return *this;
}

JsonText& JsonText::String(std::string_view value) {
  Comma();
  *text_ += '"';
  const auto special = std::find_if(value.begin(), value.end(),
                                    [](char byte) { return !kIsPlain[static_cast<unsigned char>(byte)]; });
  text_->append(value.begin(), special);
  value.remove_prefix(static_cast<std::size_t>(special - value.begin()));
  const bool is_utf8 = value.empty() || IsUtf8(value);
  for (const char byte : value) {
    const char c = is_utf8 || static_cast<unsigned char>(byte) < 0x80 ? byte : '?';
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *text_ += '\\';
      *text_ += c;
    } else if (code < 0x20) {
      constexpr const char* kDigits = "0123456789abcdef";
      *text_ += "\\u00";
      *text_ += kDigits[code >> 4];
      *text_ += kDigits[code & 15];
    } else {
      *text_ += c;
    }
  }
  *text_ += '"';
  return *this;
}

JsonText& JsonText::Number(std::int64_t value) {
  Comma();
  AppendNumber(value, text_);
  return *this;
}

JsonText& JsonText::Number(std::uint64_t value) {
  Comma();
  AppendNumber(value, text_);
  return *this;
}

JsonText& JsonText::Bool(bool value) {
  Comma();
  *text_ += value ? "true" : "false";
  return *this;
}

JsonText& JsonText::Raw(std::string_view json) {
  Comma();
  *text_ += json;
  return *this;
}

JsonText& JsonText::Numbers(const std::vector<std::int64_t>& values) {
  Begin('[');
  for (const std::int64_t value : values) Number(value);
  return End(']');
}

Status JsonText::Elements(const OutputTensor& tensor) {
  Begin('[');
  const DLDataType dtype = tensor.dtype;
  bool finite = true;
  if (dtype == kFloat32) {
    finite = AppendElements<float>(tensor, text_);
  } else if (dtype == kFloat64) {
    finite = AppendElements<double>(tensor, text_);
  } else if (dtype == kInt64) {
    AppendElements<std::int64_t>(tensor, text_);
  } else if (dtype == kInt32) {
    AppendElements<std::int32_t>(tensor, text_);
  } else if (dtype == MakeDType(kInt, 16)) {
    AppendElements<std::int16_t>(tensor, text_);
  } else if (dtype == kInt8) {
    AppendElements<std::int8_t>(tensor, text_);
  } else if (dtype == kUInt8) {
    AppendElements<std::uint8_t>(tensor, text_);
  } else if (dtype == MakeDType(kUInt, 16)) {
    AppendElements<std::uint16_t>(tensor, text_);
  } else if (dtype == MakeDType(kUInt, 32)) {
    AppendElements<std::uint32_t>(tensor, text_);
  } else if (dtype == MakeDType(kUInt, 64)) {
    AppendElements<std::uint64_t>(tensor, text_);
  } else if (dtype == kWireText) {
    std::string_view rest(reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes));
    while (const std::optional<std::string_view> one = TakeWireText(&rest)) String(*one);
  } else if (dtype == kBool8) {
    for (std::uint64_t i = 0; i < tensor.bytes; ++i) Bool(tensor.data[i] != std::byte{0});
  } else {
    return Fail(StatusCode::kUnsupported,
                "output '{}': JSON has no form of {}: ask for it with \"binary_data\": true", tensor.name,
                WireName(dtype));
  }
  if (!finite) {
    return Fail(StatusCode::kRuntimeFailed,
                "output '{}' has NaN or infinite elements, which JSON does not have: ask for it with "
                "\"binary_data\": true",
                tensor.name);
  }
  End(']');
  return {};
}

Status JsonText::ElementOrList(const OutputTensor& tensor) {
  const std::size_t begin = text_->size();
  if (Status written = Elements(tensor); !written) return written;
  if (ShapeProduct(tensor.shape) != 1) return {};
  text_->pop_back();
  text_->erase(text_->find('[', begin), 1);
  return {};
}

std::string ErrorJson(std::string_view message) {
  std::string text;
  JsonText(&text).Begin('{').Key("error").String(message).End('}');
  return text;
}

}  // namespace rewire::serve

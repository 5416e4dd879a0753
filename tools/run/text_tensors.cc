// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/text_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rewire/base/dtype.h"
#include "rewire/base/utf8.h"
#include "rewire/tools/measure/resident.h"

namespace rewire::tools {
namespace {

// memcpy, also of nothing: an empty list has no address.
void CopyAny(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

constexpr std::size_t kMostNesting = 16;

template <typename T>
HostTensor VectorOf(const std::vector<T>& elements, DLDataType dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)});
  return tensor;
}

void AppendUtf8(std::uint32_t code, std::string* text) {
  const auto add = [&](std::uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto rest = [&](int shift) { add(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    rest(0);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    rest(6);
    rest(0);
  } else {
    add(0xF0 | code >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

// The code points of well-formed UTF-8.
std::vector<std::uint32_t> CodePoints(const std::string& text) {
  std::vector<std::uint32_t> codes;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80)
      codes.back() = codes.back() << 6 | (byte & 0x3F);
    else
      codes.push_back(byte < 0x80 ? byte : byte < 0xE0 ? byte & 0x1F : byte < 0xF0 ? byte & 0x0F : byte & 7);
  }
  return codes;
}

// Appends the strings of a nested list and learns or checks its shape.
bool Flatten(const nlohmann::json& json, std::size_t depth, TextArray* array, bool* leaf_seen) {
  if (json.is_string()) {
    if (*leaf_seen && depth != array->shape.size()) return false;
    *leaf_seen = true;
    array->texts.push_back(json.get<std::string>());
    return true;
  }
  if (!json.is_array() || depth == kMostNesting) return false;
  const auto size = static_cast<std::int64_t>(json.size());
  if (depth == array->shape.size()) {
    if (*leaf_seen) return false;
    array->shape.push_back(size);
  }
  if (array->shape[depth] != size) return false;
  return std::all_of(json.begin(), json.end(),
                     [&](const nlohmann::json& each) { return Flatten(each, depth + 1, array, leaf_seen); });
}

}  // namespace

bool IsText(const HostTensor& tensor) {
  return tensor.dtype.code == kDLOpaqueHandle && tensor.dtype.bits == 32;
}

Result<TextArray> TextsIn(const HostTensor& tensor) {
  TextArray array;
  array.shape = tensor.shape;
  const std::size_t width = tensor.dtype.lanes;
  const std::size_t count = tensor.bytes.view.size() / (4 * width);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint32_t> codes(width);
    CopyAny(codes.data(), tensor.bytes.view.data() + i * 4 * width, 4 * width);
    while (!codes.empty() && codes.back() == 0) codes.pop_back();
    std::string& text = array.texts.emplace_back();
    for (const std::uint32_t code : codes) {
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return Fail(StatusCode::kInvalidFile, fmt::format("string {} has no code point but {}", i, code));
      AppendUtf8(code, &text);
    }
  }
  return array;
}

Result<HostTensor> TensorOfTexts(const TextArray& array) {
  std::vector<std::vector<std::uint32_t>> texts;
  std::size_t width = 1;
  for (const std::string& text : array.texts) {
    if (!IsUtf8(text)) return Fail(StatusCode::kUnsupported, "a string is not UTF-8");
    width = std::max(width, texts.emplace_back(CodePoints(text)).size());
  }
  if (width > UINT16_MAX)
    return Fail(StatusCode::kUnsupported,
                fmt::format("a string has {} characters, the limit is 65535", width));
  HostTensor tensor;
  tensor.dtype = {kDLOpaqueHandle, 32, static_cast<std::uint16_t>(width)};
  tensor.shape = array.shape;
  const Result<std::uint64_t> bytes = CompactBytes(tensor.dtype, tensor.shape);
  if (!bytes) return Forward(bytes);
  if (Status fits = CheckMachineHas(*bytes); !fits) return Forward(fits);
  std::byte* data = nullptr;
  tensor.bytes = AllocateBytes(static_cast<std::size_t>(*bytes), &data);
  std::fill_n(data, static_cast<std::size_t>(*bytes), std::byte{0});
  for (std::size_t i = 0; i < texts.size(); ++i)
    CopyAny(data + i * 4 * width, texts[i].data(), 4 * texts[i].size());
  return tensor;
}

Result<TextArray> ParseTexts(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  TextArray array;
  bool leaf_seen = false;
  if (json.is_discarded() || !Flatten(json, 0, &array, &leaf_seen)) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format(R"('{}' is no string, or list of strings, in JSON, such as ["a", "b"])",
                            Printable(text, 80)));
  }
  return array;
}

TextParts PartsOf(const TextArray& array) {
  std::vector<std::int64_t> positions, offsets = {0};
  std::vector<std::uint8_t> bytes;
  for (const std::string& text : array.texts) {
    positions.push_back(static_cast<std::int64_t>(positions.size()));
    bytes.insert(bytes.end(), text.begin(), text.end());
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  const auto ends = static_cast<std::int64_t>(offsets.size()),
             length = static_cast<std::int64_t>(bytes.size());
  return {VectorOf(positions, kInt64, array.shape), VectorOf(offsets, kInt64, {ends}),
          VectorOf(bytes, kUInt8, {length})};
}

Result<std::vector<std::string>> ListIn(const HostTensor& offsets, const HostTensor& bytes) {
  if (offsets.dtype != kInt64 || bytes.dtype != kUInt8)
    return Fail(StatusCode::kInvalidArgument, "the list of its strings is no offsets of i64 and bytes of u8");
  std::vector<std::int64_t> ends(offsets.bytes.view.size() / sizeof(std::int64_t));
  CopyAny(ends.data(), offsets.bytes.view.data(), ends.size() * sizeof(std::int64_t));
  const auto length = static_cast<std::int64_t>(bytes.bytes.view.size());
  const auto* text = reinterpret_cast<const char*>(bytes.bytes.view.data());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i] < 0 || ends[i + 1] < ends[i] || ends[i + 1] > length) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("string {} of its list lies from {} to {} of {} bytes", i, ends[i], ends[i + 1],
                              length));
    }
    texts.emplace_back(text + ends[i], static_cast<std::size_t>(ends[i + 1] - ends[i]));
  }
  return texts;
}

std::optional<TextPlaces> PlacesOf(const Module& module, const std::string& key, std::size_t count) {
  for (const auto& [name, value] : module.metadata) {
    if (name != key) continue;
    const auto json = nlohmann::json::parse(value, nullptr, false);
    const auto place = [&](const char* part) {
      return json.is_object() && json.contains(part) && json[part].is_number_unsigned() && json[part] < count;
    };
    if (!place("offsets") || !place("bytes")) return std::nullopt;
    return TextPlaces{json["offsets"].get<std::uint32_t>(), json["bytes"].get<std::uint32_t>()};
  }
  return std::nullopt;
}

}  // namespace rewire::tools

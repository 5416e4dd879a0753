// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "rewire/base/byte_reader.h"
#include "rewire/base/dtype.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/tensor_files/json_text.h"

namespace rewire {
namespace {

// The limit of the format's own reader.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct DTypeSpelling {
  std::string_view name;
  DLDataType dtype;
};
constexpr std::array<DTypeSpelling, 14> kDTypes = {{
    {"BOOL", kBool8},
    {"U8", kUInt8},
    {"I8", kInt8},
    {"U16", MakeDType(kUInt, 16)},
    {"I16", MakeDType(kInt, 16)},
    {"F16", kFloat16},
    {"BF16", MakeDType(kBFloat, 16)},
    {"U32", MakeDType(kUInt, 32)},
    {"I32", kInt32},
    {"F32", kFloat32},
    {"U64", MakeDType(kUInt, 64)},
    {"I64", kInt64},
    {"F64", kFloat64},
    {"C64", MakeDType(kComplex, 64)},
}};

Status Damaged(const std::string& message) { return Fail(StatusCode::kInvalidFile, message); }

// A header entry and where its bytes lie.
struct Entry {
  std::string name;
  DLDataType dtype = {};
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::optional<std::string_view> Find(const std::vector<json::Member>& members, std::string_view name) {
  for (const json::Member& member : members) {
    if (member.first == name) return member.second;
  }
  return std::nullopt;
}

// Returns a name that occurs twice, or nothing. Such names are refused, because parsers differ in which of
// the two they use.
std::string_view Repeated(const std::vector<json::Member>& members) {
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const json::Member& member : members) names.push_back(member.first);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? std::string_view() : *twice;
}

Result<Entry> ParseEntry(const std::string& name, std::string_view text, std::uint64_t data_size) {
  const auto members = json::Members(text);
  if (!members) return Damaged("is no JSON object");
  if (const std::string_view twice = Repeated(*members); !twice.empty()) {
    return Damaged(fmt::format("names '{}' twice", twice));
  }
  const auto dtype = json::String(Find(*members, "dtype").value_or("null"));
  const auto shape = json::Elements(Find(*members, "shape").value_or("null"));
  const auto offsets = json::Elements(Find(*members, "data_offsets").value_or("null"));
  if (!dtype) return Damaged("has no dtype");
  if (!shape) return Damaged("has no shape");
  if (!offsets || offsets->size() != 2) return Damaged("has no data_offsets");

  Entry entry;
  entry.name = name;
  const auto* spelling = std::find_if(kDTypes.begin(), kDTypes.end(),
                                      [&](const DTypeSpelling& known) { return known.name == *dtype; });
  if (spelling == kDTypes.end()) {
    return Fail(StatusCode::kUnsupported, fmt::format("has dtype '{}', which is not supported", *dtype));
  }
  entry.dtype = spelling->dtype;
  for (const std::string_view dim : *shape) {
    const std::optional<std::uint64_t> size = json::Unsigned(dim);
    if (!size || *size > INT64_MAX) return Damaged("has a dimension that is no size");
    entry.shape.push_back(static_cast<std::int64_t>(*size));
  }
  const std::optional<std::uint64_t> begin = json::Unsigned((*offsets)[0]);
  const std::optional<std::uint64_t> end = json::Unsigned((*offsets)[1]);
  if (!begin || !end) return Damaged("has an offset that is no number");
  entry.begin = *begin;
  entry.end = *end;
  if (entry.begin > entry.end || entry.end > data_size) {
    return Damaged(
        fmt::format("has bytes {} to {}, the file has {} of data", entry.begin, entry.end, data_size));
  }
  const Result<std::uint64_t> expected = CompactBytes(entry.dtype, entry.shape);
  if (!expected) return Damaged(expected.error().message());
  if (*expected != entry.end - entry.begin) {
    return Damaged(fmt::format("is {} and needs {} bytes, its range has {}",
                               TensorTypeText(entry.dtype, entry.shape), *expected, entry.end - entry.begin));
  }
  return entry;
}

}  // namespace

std::string_view SafetensorsDType(DLDataType dtype) {
  for (const DTypeSpelling& spelling : kDTypes) {
    if (spelling.dtype == dtype) return spelling.name;
  }
  return {};
}

Result<std::vector<NamedTensor>> ParseSafetensors(const SharedBytes& bytes) {
  ByteReader reader(bytes.view);
  const auto header_size = reader.Read<std::uint64_t>();
  if (header_size > kMaxHeaderBytes)
    return Damaged(
        "not a .safetensors file, or its header is damaged; safetensors.numpy.save_file writes one");
  const std::string_view text = reader.ReadString(header_size);
  if (!reader.ok())
    return Damaged(
        "not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file writes one");
  std::optional<std::vector<json::Member>> header;
  if (IsUtf8(text)) header = json::Members(json::Value(text));
  if (!header) return Damaged("its header is no JSON object");
  if (const std::string_view twice = Repeated(*header); !twice.empty()) {
    return Damaged(fmt::format("its header names tensor '{}' twice", twice));
  }

  const std::uint64_t data_size = reader.remaining();
  const Span<const std::byte> data = reader.ReadBytes(data_size);
  std::vector<Entry> entries;
  for (const auto& [name, value] : *header) {
    if (name == kSafetensorsMetadata) continue;
    Result<Entry> entry = ParseEntry(name, value, data_size);
    if (!entry) {
      return Fail(entry.error().code(), fmt::format("tensor '{}' {}", name, entry.error().message()));
    }
    entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::vector<NamedTensor> tensors;
  std::uint64_t covered = 0;
  for (Entry& entry : entries) {
    if (entry.begin != covered) {
      return Damaged(fmt::format("tensor '{}' begins at byte {}, the tensors before it end at {}", entry.name,
                                 entry.begin, covered));
    }
    covered = entry.end;
    const SharedBytes range{data.subspan(entry.begin, entry.end - entry.begin), bytes.owner};
    tensors.push_back(
        {std::move(entry.name), {entry.dtype, std::move(entry.shape), AlignedFor(entry.dtype, range)}});
  }
  if (covered != data_size)
    return Damaged(fmt::format("{} bytes follow its last tensor", data_size - covered));
  return tensors;
}

Result<std::vector<NamedTensor>> ReadSafetensors(const std::string& path) {
  const Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  Result<std::vector<NamedTensor>> tensors = ParseSafetensors(*bytes);
  if (!tensors) return Forward(tensors, path);
  return tensors;
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include "executable_format/tensor_files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/atomic_file.h"
#include "base/byte_reader.h"
#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace rewire {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
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

tl::unexpected<Error> Damaged(std::string message) {
  return Fail(StatusCode::kInvalidFile, std::move(message));
}

// A header entry and where its bytes lie.
struct Entry {
  std::string name;
  DLDataType dtype = {};
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The JSON, refusing a tensor that is named twice: a parser would keep the last without a word.
Result<Json> ParseHeader(std::string_view text) {
  std::unordered_set<std::string> names;
  std::string twice;
  const auto note_names = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && parsed.is_string()) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.insert(name).second) twice = name;
    }
    return true;
  };
  Json header = Json::parse(text, note_names, /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged("its header is no JSON object");
  if (!twice.empty()) return Damaged(fmt::format("its header names tensor '{}' twice", twice));
  return header;
}

Result<Entry> ParseEntry(const std::string& name, const Json& json, std::uint64_t data_size) {
  if (!json.is_object()) return Damaged("is no JSON object");
  const auto dtype = json.find("dtype");
  const auto shape = json.find("shape");
  const auto offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string()) return Damaged("has no dtype");
  if (shape == json.end() || !shape->is_array()) return Damaged("has no shape");
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2)
    return Damaged("has no data_offsets");

  Entry entry;
  entry.name = name;
  const auto& dtype_name = dtype->get_ref<const std::string&>();
  const auto* spelling = std::find_if(kDTypes.begin(), kDTypes.end(),
                                      [&](const DTypeSpelling& known) { return known.name == dtype_name; });
  if (spelling == kDTypes.end()) {
    return Fail(StatusCode::kUnsupported, fmt::format("has dtype '{}', which is not supported", dtype_name));
  }
  entry.dtype = spelling->dtype;
  for (const Json& dim : *shape) {
    // Numbers that JSON reads as unsigned are the integers from 0 on.
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > INT64_MAX)
      return Damaged("has a dimension that is no size");
    entry.shape.push_back(static_cast<std::int64_t>(dim.get<std::uint64_t>()));
  }
  for (const Json& offset : *offsets) {
    if (!offset.is_number_unsigned()) return Damaged("has an offset that is no number");
  }
  entry.begin = (*offsets)[0].get<std::uint64_t>();
  entry.end = (*offsets)[1].get<std::uint64_t>();
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

std::string_view NameOf(DLDataType dtype) {
  for (const DTypeSpelling& spelling : kDTypes) {
    if (spelling.dtype == dtype) return spelling.name;
  }
  return {};
}

}  // namespace

bool HasSafetensorsDType(DLDataType dtype) { return !NameOf(dtype).empty(); }

Result<std::vector<NamedTensor>> ParseSafetensors(const SharedBytes& bytes) {
  ByteReader reader(bytes.view);
  const auto header_size = reader.Read<std::uint64_t>();
  if (header_size > kMaxHeaderBytes) return Damaged("not a .safetensors file, or its header is damaged");
  const std::string_view text = reader.ReadString(header_size);
  if (!reader.ok()) return Damaged("not a .safetensors file, or it ends inside its header");
  const Result<Json> header = ParseHeader(text);
  if (!header) return Forward(header);

  const std::uint64_t data_size = reader.remaining();
  const Span<const std::byte> data = reader.ReadBytes(data_size);
  std::vector<Entry> entries;
  for (const auto& [name, json] : header->items()) {
    if (name == kMetadataKey) continue;
    Result<Entry> entry = ParseEntry(name, json, data_size);
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

Status WriteSafetensors(const std::string& path, Span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    const std::string context = path + ": tensor '" + named.name + "'";
    const HostTensor& tensor = named.tensor;
    if (!names.insert(named.name).second || named.name == kMetadataKey || !IsUtf8(named.name)) {
      return Fail(StatusCode::kInvalidArgument, context + ": the name is used twice, reserved or not UTF-8");
    }
    if (NameOf(tensor.dtype).empty()) {
      return Fail(StatusCode::kUnsupported,
                  context + ": .safetensors has no element type " + DTypeName(tensor.dtype));
    }
    const Result<std::uint64_t> size = CompactBytes(tensor.dtype, tensor.shape);
    if (!size) return Forward(size, context);
    if (*size != tensor.bytes.view.size()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: {} has {} bytes, {} are given", context,
                              TensorTypeText(tensor.dtype, tensor.shape), *size, tensor.bytes.view.size()));
    }
    order.push_back(&named);
  }
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return ElementBytes(a->tensor.dtype) > ElementBytes(b->tensor.dtype);
  });
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const NamedTensor* named : order) {
    const std::uint64_t end = offset + named->tensor.bytes.view.size();
    header[named->name] = {{"dtype", NameOf(named->tensor.dtype)},
                           {"shape", named->tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Spaces after the header put the data on a cache line, for readers that map the file.
  constexpr std::size_t kDataAlignment = 64;
  std::string text = header.dump();
  const std::size_t unaligned = (sizeof(std::uint64_t) + text.size()) % kDataAlignment;
  if (unaligned != 0) text.append(kDataAlignment - unaligned, ' ');

  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  const std::uint64_t header_size = text.size();
  Status written = file->Write({reinterpret_cast<const std::byte*>(&header_size), sizeof(header_size)});
  if (written) written = file->Write({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  for (const NamedTensor* named : order) {
    if (written) written = file->Write(named->tensor.bytes.view);
  }
  if (!written) return Forward(written);
  return file->Commit();
}

}  // namespace rewire

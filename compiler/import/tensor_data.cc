// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/tensor_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "rewire/base/mapped_file.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> ParseUnsigned(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Both are absolute; links are not followed.
bool LiesIn(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// The place of external data, as the tensor says; `bytes` is its size.
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

Result<ExternalPlace> PlaceOf(const onnx::TensorProto& proto, std::uint64_t bytes) {
  ExternalPlace place;
  place.length = bytes;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const std::optional<std::uint64_t> value = ParseUnsigned(entry.value());
    if (!value) {
      return Fail(StatusCode::kInvalidFile,
                  fmt::format("external data: {} is '{}', expected a number", entry.key(), entry.value()));
    }
    (entry.key() == "offset" ? place.offset : place.length) = *value;
  }
  return place;
}

// The file of external data. Errors: those of a path, and of mapping the file.
Result<SharedBytes> ExternalFile(const std::string& location, const ExternalData& external) {
  const auto in_memory = external.files.find(location);
  if (in_memory != external.files.end()) return in_memory->second;
  const Result<std::string> path = ExternalPath(location, external);
  if (!path) return Forward(path);
  Result<SharedBytes> file = MapFileWithoutLinks(*path, *path);
  if (!file) return Forward(file, "external data");
  if (external.read != nullptr) external.read->insert(location);
  return file;
}

Result<SharedBytes> ReadExternal(const onnx::TensorProto& proto, std::uint64_t bytes,
                                 const ExternalData& external) {
  const Result<ExternalPlace> place = PlaceOf(proto, bytes);
  if (!place) return Forward(place);
  const Result<SharedBytes> file = ExternalFile(place->location, external);
  if (!file) return Forward(file);
  const std::uint64_t size = file->view.size();
  if (place->offset > size || place->length > size - place->offset || place->length != bytes) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("external data '{}': {} bytes at {} of a file of {}; the tensor has {} bytes",
                            place->location, place->length, place->offset, size, bytes));
  }
  const Span<const std::byte> elements = file->view.subspan(place->offset, bytes);
  return file->owner == nullptr ? CopyBytes(elements) : SharedBytes{elements, file->owner};
}

// The typed field that holds elements of this dtype, narrowed to `bytes` bytes.
Result<SharedBytes> ReadTyped(const onnx::TensorProto& proto, DLDataType dtype, std::uint64_t bytes) {
  auto data = std::make_shared<std::vector<std::byte>>();
  const auto copy = [&]<typename To>(const auto& field, To) {
    // Checked before anything is sized from the shape.
    if (static_cast<std::uint64_t>(field.size()) * sizeof(To) != bytes) {
      return Status(Fail(StatusCode::kInvalidFile, fmt::format("it has {} bytes of data, its shape takes {}",
                                                               field.size() * sizeof(To), bytes)));
    }
    data->resize(bytes);
    for (int i = 0; i < field.size(); ++i) {
      const To element = static_cast<To>(field.Get(i));
      std::memcpy(data->data() + static_cast<std::size_t>(i) * sizeof(To), &element, sizeof(To));
    }
    return Status();
  };
  Status copied;
  const bool narrow = dtype.code != kFloat || dtype.bits == 16;
  if (dtype.code == kComplex) {
    copied = dtype.bits == 64 ? copy(proto.float_data(), float{}) : copy(proto.double_data(), double{});
  } else if (dtype == kFloat32) {
    copied = copy(proto.float_data(), float{});
  } else if (dtype == kFloat64) {
    copied = copy(proto.double_data(), double{});
  } else if (dtype == kInt64) {
    copied = copy(proto.int64_data(), std::int64_t{});
  } else if (dtype.code == kUInt && dtype.bits >= 32) {
    copied = dtype.bits == 64 ? copy(proto.uint64_data(), std::uint64_t{})
                              : copy(proto.uint64_data(), std::uint32_t{});
  } else if (narrow && dtype.bits == 32) {
    copied = copy(proto.int32_data(), std::int32_t{});
  } else if (narrow && dtype.bits == 16) {
    copied = copy(proto.int32_data(), std::uint16_t{});
  } else {
    copied = copy(proto.int32_data(), std::uint8_t{});
  }
  if (!copied) return Forward(copied);
  return SharedBytes{Span<const std::byte>(data->data(), data->size()), data};
}

// The bytes that ONNX stores for elements that take `bytes` here. Those of less than 8 bits lie beside each
// other, the first in the lowest bits.
std::uint64_t StoredBytes(DLDataType dtype, std::uint64_t bytes) {
  if (dtype.bits >= 8) return bytes;
  const std::uint64_t per_byte = 8u / dtype.bits;
  return bytes / per_byte + (bytes % per_byte != 0 ? 1 : 0);
}

// One element in each byte. The upper bits of signed integers are copies of the sign.
SharedBytes Unpack(DLDataType dtype, std::uint64_t count, Span<const std::byte> packed) {
  auto data = std::make_shared<std::vector<std::byte>>(count);
  const std::uint64_t per_byte = 8u / dtype.bits;
  const int sign = 1 << (dtype.bits - 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const int shifted = std::to_integer<int>(packed[i / per_byte]) >> (i % per_byte * dtype.bits);
    const int raw = shifted & (2 * sign - 1);
    (*data)[i] = static_cast<std::byte>(dtype.code == kInt ? (raw ^ sign) - sign : raw);
  }
  return SharedBytes{Span<const std::byte>(data->data(), data->size()), data};
}

Result<SharedBytes> ReadElements(const onnx::TensorProto& proto, DLDataType dtype, std::uint64_t bytes,
                                 const ExternalData& external, const std::shared_ptr<const void>& owner) {
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return ReadExternal(proto, bytes, external);
  if (!proto.has_raw_data()) return ReadTyped(proto, dtype, bytes);
  const std::string& raw = proto.raw_data();
  if (raw.size() != bytes) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("it has {} bytes of data, its shape takes {}", raw.size(), bytes));
  }
  return SharedBytes{{reinterpret_cast<const std::byte*>(raw.data()), raw.size()}, owner};
}

}  // namespace

Result<std::string> ExternalPath(const std::string& location, const ExternalData& external) {
  const std::string& folder = external.folder;
  if (folder.empty()) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("external data '{}' needs a model that is read from a folder", location));
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return Fail(StatusCode::kIo, fmt::format("folder '{}': {}", folder, error.message()));
  const fs::path path = fs::weakly_canonical(root / location, error);
  // A path that is still a link leads to nothing.
  std::error_code missing;
  if (!error && fs::is_symlink(path, missing)) {
    return Fail(StatusCode::kNotFound, fmt::format("external data '{}' is a link that leads nowhere: '{}'",
                                                   location, path.string()));
  }
  const bool named = !error && !location.empty() && !fs::path(location).is_absolute();
  if (named && LiesIn(path, root)) return path.string();
  if (named && LiesIn((root / location).lexically_normal(), root)) {
    if (!external.real_folder.empty() && LiesIn(path, external.real_folder)) return path.string();
    for (const std::string& allowed : external.allowed) {
      const fs::path there = fs::canonical(allowed, error);
      if (error) return Fail(StatusCode::kIo, fmt::format("folder '{}': {}", allowed, error.message()));
      if (LiesIn(path, there)) return path.string();
    }
    return Fail(StatusCode::kInvalidFile,
                fmt::format("external data '{}' is '{}', by a link that leads out of the model's folder; "
                            "copy the file there, or allow the folder where it lies with --allow-external "
                            "(CompileOptions::external_folders)",
                            location, path.string()));
  }
  return Fail(StatusCode::kInvalidFile,
              fmt::format("external data '{}' is not inside the model's folder", location));
}

Result<HostTensor> ReadTensorProto(const onnx::TensorProto& proto, const ExternalData& external,
                                   const std::shared_ptr<const void>& owner) {
  const std::string what = fmt::format("tensor '{}'", proto.name());
  const std::optional<DLDataType> dtype = DTypeOfOnnx(proto.data_type());
  if (!dtype) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("{}: element type {} is not supported", what, OnnxTypeName(proto.data_type())));
  }
  HostTensor tensor;
  tensor.dtype = *dtype;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  if (tensor.shape.size() > kMaxRank) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} has {} dimensions, the limit is {}", what, tensor.shape.size(), kMaxRank));
  }
  const Result<std::uint64_t> bytes = CompactBytes(tensor.dtype, tensor.shape);
  if (!bytes) return Forward(bytes, what);
  const std::uint64_t stored = StoredBytes(tensor.dtype, *bytes);
  Result<SharedBytes> elements = ReadElements(proto, tensor.dtype, stored, external, owner);
  if (!elements) return Forward(elements, what);
  if (tensor.dtype.bits < 8) elements = Unpack(tensor.dtype, *bytes, elements->view);
  tensor.bytes = AlignedFor(tensor.dtype, *elements);  // offsets of external data may be odd
  return tensor;
}

Result<HostTensor> ReadSparseTensorProto(const onnx::SparseTensorProto& proto, const ExternalData& external,
                                         const std::shared_ptr<const void>& owner, std::uint64_t* bytes) {
  const std::string what = fmt::format("sparse tensor '{}'", proto.values().name());
  const Result<HostTensor> values = ReadTensorProto(proto.values(), external, owner);
  if (!values) return Forward(values);
  const Result<HostTensor> indices = ReadTensorProto(proto.indices(), external, owner);
  if (!indices) return Forward(indices);
  HostTensor tensor;
  tensor.dtype = values->dtype;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  const std::size_t rank = tensor.shape.size();
  if (rank > kMaxRank) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} has {} dimensions, the limit is {}", what, rank, kMaxRank));
  }
  const Result<std::uint64_t> size = CompactBytes(tensor.dtype, tensor.shape);
  if (!size) return Forward(size, what);
  if (*size > *bytes) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("{} has {} bytes with its zeros, {} are left for such tensors; allow more with "
                            "--max-fold-bytes (CompileLimits::fold_bytes)",
                            what, *size, *bytes));
  }
  // Indices of rank 1 count elements, those of rank 2 are positions along each axis.
  const bool linear = indices->shape.size() == 1;
  const auto count = values->shape.size() == 1 ? static_cast<std::uint64_t>(values->shape[0]) : 0;
  std::vector<std::int64_t> expected = {static_cast<std::int64_t>(count)};
  if (!linear) expected.push_back(static_cast<std::int64_t>(rank));
  if (indices->dtype != kInt64 || indices->shape != expected || values->shape.size() != 1) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} has values [{}] and indices [{}], expected [n] and [n] or [n, {}] of i64",
                            what, fmt::join(values->shape, ", "), fmt::join(indices->shape, ", "), rank));
  }
  *bytes -= *size;
  const std::uint64_t element = ElementBytes(tensor.dtype);
  auto data = std::make_shared<std::vector<std::byte>>(*size);
  const std::size_t columns = linear ? 1 : rank;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t at = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      std::int64_t index = 0;
      std::memcpy(&index, indices->bytes.view.data() + (i * columns + j) * sizeof(index), sizeof(index));
      const auto room = linear ? *size / element : static_cast<std::uint64_t>(tensor.shape[j]);
      if (index < 0 || static_cast<std::uint64_t>(index) >= room) {
        return Fail(StatusCode::kInvalidFile,
                    fmt::format("{}: index {} is {}, expected one below {}", what, i, index, room));
      }
      at = at * room + static_cast<std::uint64_t>(index);
    }
    std::memcpy(data->data() + at * element, values->bytes.view.data() + i * element, element);
  }
  tensor.bytes = SharedBytes{Span<const std::byte>(data->data(), data->size()), data};
  return tensor;
}

std::uint64_t WeightBytes(const onnx::GraphProto& graph) {
  std::uint64_t bytes = 0;
  std::map<std::string, std::uint64_t> ends;  // by file: where the last tensor in it ends
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    bytes += tensor.ByteSizeLong();
    const std::optional<DLDataType> dtype = DTypeOfOnnx(tensor.data_type());
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL || !dtype) continue;
    const std::vector<std::int64_t> shape(tensor.dims().begin(), tensor.dims().end());
    const Result<std::uint64_t> size = CompactBytes(*dtype, shape);
    const Result<ExternalPlace> place = PlaceOf(tensor, size ? StoredBytes(*dtype, *size) : 0);
    if (!place) continue;
    std::uint64_t& end = ends[place->location];
    end = std::max(end, place->offset + place->length);
  }
  for (const auto& [location, end] : ends) bytes += end;
  return bytes;
}

}  // namespace rewire::compiler

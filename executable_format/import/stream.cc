// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/stream.h"

#include <fmt/format.h>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/dtype.h"
#include "rewire/base/max_rank.h"

namespace rewire::tvm {
namespace {

constexpr std::uint64_t kTensorMagic = 0xDD5E40F096B4A13F;
constexpr std::uint64_t kParametersMagic = 0xF7E58D4F05049CB7;

bool StartsWith(Span<const std::byte> bytes, std::uint64_t magic) {
  ByteReader reader(bytes);
  return reader.Read<std::uint64_t>() == magic && reader.ok();
}

}  // namespace

Status Malformed(const std::string& message) { return Fail(StatusCode::kInvalidFile, message); }

Status Truncated(const std::string& what) { return Malformed("the file ends inside " + what); }

std::string ReadString(ByteReader& reader) {
  return std::string(reader.ReadString(reader.Read<std::uint64_t>()));
}

Array<std::string> ReadStrings(ByteReader& reader) {
  Array<std::string> strings;
  const std::size_t count = reader.ReadCount<std::uint64_t>(sizeof(std::uint64_t));
  // Grows with what is read: a count of lengths that fits says nothing of the strings behind them.
  for (std::size_t i = 0; i < count && reader.ok(); ++i) strings.push_back(ReadString(reader));
  return strings;
}

Array<std::int64_t> ReadInts(ByteReader& reader) {
  Array<std::int64_t> ints(reader.ReadCount<std::uint64_t>(sizeof(std::int64_t)));
  for (std::int64_t& value : ints) value = reader.Read<std::int64_t>();
  return ints;
}

DLDataType FromTvmDType(DLDataType type) { return type == MakeDType(kUInt, 1) ? kBool8 : type; }

Result<ForeignTensor> ReadTensor(ByteReader& reader, const std::string& what) {
  const auto magic = reader.Read<std::uint64_t>();
  reader.Read<std::uint64_t>();  // reserved
  reader.Read<std::uint64_t>();  // the device it was saved from; it is loaded where the reader wants it
  const auto rank = reader.Read<std::int32_t>();
  const auto stored_dtype = reader.Read<DLDataType>();
  if (!reader.ok()) return Truncated(what);
  if (magic != kTensorMagic) {
    return Malformed(
        fmt::format("{} starts with {:#x} instead of a tensor's {:#x}", what, magic, kTensorMagic));
  }
  if (rank < 0 || rank > kMaxRank) {
    return Malformed(fmt::format("{} has rank {}; it is 0 to {}", what, rank, kMaxRank));
  }
  if (stored_dtype.lanes != 1) {
    // Its byte count leaves the lanes out, so where it ends is not known.
    return Fail(StatusCode::kUnsupported, fmt::format("{} has elements of {} lanes; only 1 can be read back",
                                                      what, stored_dtype.lanes));
  }
  ForeignTensor tensor;
  tensor.dtype = FromTvmDType(stored_dtype);
  if (!IsValidDType(tensor.dtype)) {
    return Malformed(
        fmt::format("{} has a dtype of code {} and {} bits", what, stored_dtype.code, stored_dtype.bits));
  }
  for (std::int32_t i = 0; i < rank; ++i) tensor.shape.push_back(reader.Read<std::int64_t>());
  const auto stored_bytes = reader.Read<std::int64_t>();
  if (!reader.ok()) return Truncated(what);
  const std::optional<std::uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
  if (!bytes || stored_bytes < 0 || static_cast<std::uint64_t>(stored_bytes) != *bytes) {
    return Malformed(fmt::format("{} claims {} bytes, its {} elements of shape [{}] take {}", what,
                                 stored_bytes, DTypeName(tensor.dtype), fmt::join(tensor.shape, ", "),
                                 bytes ? std::to_string(*bytes) : std::string("no valid number")));
  }
  tensor.bytes = reader.ReadBytes(*bytes);
  if (!reader.ok()) return Truncated(what);
  return tensor;
}

bool IsParameterList(Span<const std::byte> bytes) { return StartsWith(bytes, kParametersMagic); }

Result<NamedTensors> ReadParameterList(Span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.Read<std::uint64_t>();
  if (magic != kParametersMagic) {
    return Malformed(fmt::format("not a parameter file of TVM: it starts with {:#x} instead of {:#x}", magic,
                                 kParametersMagic));
  }
  reader.Read<std::uint64_t>();  // reserved
  Array<std::string> names = ReadStrings(reader);
  const auto count = reader.Read<std::uint64_t>();
  if (!reader.ok()) return Truncated("the parameter names");
  if (count != names.size()) {
    return Malformed(fmt::format("the parameter file has {} names and {} tensors", names.size(), count));
  }
  NamedTensors parameters;
  for (std::string& name : names) {
    Result<ForeignTensor> tensor = ReadTensor(reader, fmt::format("parameter '{}'", name));
    if (!tensor) return Forward(tensor);
    parameters.emplace_back(std::move(name), std::move(*tensor));
  }
  return parameters;
}

}  // namespace rewire::tvm

// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/byte_reader.h"
#include "rewire/base/dtype.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/tensor_files/npy_header.h"

namespace rewire {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// numpy pads headers so that the data starts at a multiple of this.
constexpr std::size_t kDataAlignment = 64;

// `source` holds the array with its first dimension running fastest.
SharedBytes RowMajor(const NpyHeader& header, Span<const std::byte> source) {
  const std::size_t element = ElementBytes(header.dtype);
  const std::size_t rank = header.shape.size();
  std::vector<std::size_t> strides(rank);
  std::size_t stride = element;
  for (std::size_t i = 0; i < rank; ++i) {
    strides[i] = stride;
    stride *= static_cast<std::size_t>(header.shape[i]);
  }
  std::byte* target = nullptr;
  SharedBytes bytes = AllocateBytes(source.size(), &target);
  std::vector<std::int64_t> index(rank);
  std::size_t offset = 0;
  for (std::size_t done = 0; done < source.size(); done += element) {
    std::memcpy(target + done, source.data() + offset, element);
    for (std::size_t i = rank; i-- > 0;) {
      offset += strides[i];
      if (++index[i] < header.shape[i]) break;
      offset -= strides[i] * static_cast<std::size_t>(header.shape[i]);
      index[i] = 0;
    }
  }
  return bytes;
}

}  // namespace

Result<HostTensor> ParseNpy(const SharedBytes& bytes) {
  ByteReader reader(bytes.view);
  if (reader.ReadString(kMagic.size()) != kMagic) {
    return Fail(StatusCode::kInvalidFile,
                "not an .npy file, which begins with \\x93NUMPY; use numpy.save to write one");
  }
  const auto major = reader.Read<std::uint8_t>();
  reader.Read<std::uint8_t>();
  if (reader.ok() && (major < 1 || major > 3)) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("it is of version {} of the .npy format; versions 1 to 3 are supported", major));
  }
  const std::uint64_t header_size = major == 1 ? reader.Read<std::uint16_t>() : reader.Read<std::uint32_t>();
  const std::string_view header_text = reader.ReadString(header_size);
  if (!reader.ok()) return Fail(StatusCode::kInvalidFile, "it ends inside its header");
  Result<NpyHeader> header = ParseNpyHeader(header_text);
  if (!header) return Forward(header);
  const Result<std::uint64_t> expected = CompactBytes(header->dtype, header->shape);
  if (!expected)
    return Fail(StatusCode::kInvalidFile, "its header is damaged: " + expected.error().message());
  if (*expected != reader.remaining()) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} has {} bytes, {} follow the header",
                            TensorTypeText(header->dtype, header->shape), *expected, reader.remaining()));
  }
  HostTensor tensor;
  tensor.dtype = header->dtype;
  const SharedBytes data{reader.ReadBytes(*expected), bytes.owner};
  const bool reorder = header->fortran_order && header->shape.size() > 1;
  tensor.bytes = reorder ? RowMajor(*header, data.view) : AlignedFor(tensor.dtype, data);
  tensor.shape = std::move(header->shape);
  return tensor;
}

Result<HostTensor> ReadNpy(const std::string& path) {
  Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  Result<HostTensor> tensor = ParseNpy(*bytes);
  if (!tensor) return Forward(tensor, path);
  return tensor;
}

Result<std::vector<std::byte>> NpyPrefix(DLDataType dtype, Span<const std::int64_t> shape, std::size_t size) {
  Result<std::string> dictionary = NpyHeaderText(dtype, shape);
  if (!dictionary) return Forward(dictionary);
  // Version 1 counts the header in 16 bits: room for some 3,000 dimensions.
  constexpr std::size_t kPrefix = kMagic.size() + 2 + sizeof(std::uint16_t);
  std::string header = std::move(*dictionary);
  // One byte for the end of the line.
  const std::size_t whole = std::max(size, kPrefix + header.size() + 1);
  header.resize((whole + kDataAlignment - 1) / kDataAlignment * kDataAlignment - kPrefix, ' ');
  header.back() = '\n';
  if (header.size() > UINT16_MAX) return Fail(StatusCode::kUnsupported, "its shape has too many dimensions");
  const auto counted = static_cast<std::uint16_t>(header.size());
  std::string text(kMagic);
  text += '\1';
  text += '\0';
  text += static_cast<char>(counted & 0xFF);
  text += static_cast<char>(counted >> 8);
  text += header;
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return std::vector<std::byte>(bytes, bytes + text.size());
}

Result<std::vector<std::byte>> SerializeNpy(const HostTensor& tensor) {
  Result<std::vector<std::byte>> file = NpyPrefix(tensor.dtype, tensor.shape);
  if (!file) return file;
  file->insert(file->end(), tensor.bytes.view.begin(), tensor.bytes.view.end());
  return file;
}

Status WriteNpy(const std::string& path, const HostTensor& tensor) {
  Result<std::vector<std::byte>> bytes = SerializeNpy(tensor);
  if (!bytes) return Forward(bytes, path);
  return WriteFileAtomically(path, *bytes);
}

}  // namespace rewire

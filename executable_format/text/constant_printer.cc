// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/constant_printer.h"
#include "rewire/executable_format/compress_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "rewire/base/hash.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/text/base64.h"
#include "rewire/executable_format/text/element_text.h"

namespace rewire::text {
namespace {

// A size in the file may claim anything; constants beyond this are written as they are stored.
constexpr std::uint64_t kMaxDecodedBytes = std::uint64_t{1} << 30;
// More elements than this are easier to read as nothing at all.
constexpr std::size_t kMaxElements = 1 << 16;
constexpr std::size_t kElementsPerLine = 16;

std::string Base64Text(Span<const std::byte> bytes) { return "base64 \"" + EncodeBase64(bytes) + "\""; }

}  // namespace

std::optional<HostTensor> RestorableTensor(const Constant& constant) {
  const TypeNode& type = constant.type;
  const bool dynamic = type.kind != TypeKind::kTensor || type.rank == kUnknownRank ||
                       !IsValidDType(type.dtype) ||
                       std::any_of(type.dims.begin(), type.dims.end(), [](Dim dim) { return dim < 0; });
  if (constant.kind != ConstantKind::kData || dynamic) return std::nullopt;
  const Result<std::uint64_t> bytes = CompactBytes(type.dtype, type.dims);
  if (!bytes || *bytes != constant.raw_bytes) return std::nullopt;
  HostTensor tensor{type.dtype, {type.dims.begin(), type.dims.end()}, constant.stored};
  if (constant.codec == kCodecNone) {
    if (constant.stored.view.size() != *bytes) return std::nullopt;
    return tensor;
  }
  if (*bytes > kMaxDecodedBytes) return std::nullopt;
  std::byte* raw = nullptr;
  tensor.bytes = AllocateBytes(*bytes, &raw);
  Constant stored = constant;
  if (stored.checksum == 0) stored.checksum = Hash64(stored.stored.view);  // a module made in this process
  if (!DecodeConstant(stored, ConstantCodecs{}, {raw, *bytes})) return std::nullopt;
  Constant again = constant;
  again.codec = kCodecNone;
  again.stored = tensor.bytes;
  if (!CompressConstant(&again)) return std::nullopt;
  const Span<const std::byte> before = constant.stored.view;
  const Span<const std::byte> after = again.stored.view;
  const bool same =
      again.codec == constant.codec && std::equal(before.begin(), before.end(), after.begin(), after.end());
  if (!same) return std::nullopt;
  return tensor;
}

std::string TensorDataText(const HostTensor& tensor) {
  const Span<const std::byte> bytes = tensor.bytes.view;
  const std::size_t element = ElementBytes(tensor.dtype);
  const std::size_t count = bytes.size() / element;
  if (!HasElementText(tensor.dtype)) return Base64Text(bytes);
  const bool zeros =
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  if (zeros && count > 1) return "zeros";
  if (count > kMaxElements) return Base64Text(bytes);

  // One line for each row, or a long row in several.
  const std::size_t row = tensor.shape.size() < 2 ? count : static_cast<std::size_t>(tensor.shape.back());
  const bool one_line = count <= kElementsPerLine;
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string value = ElementText(tensor.dtype, bytes.data() + i * element);
    if (value.empty()) return Base64Text(bytes);
    if (i != 0) text += ",";
    const bool starts_line = i % row % kElementsPerLine == 0;
    if (!one_line && starts_line) {
      text += "\n  ";
    } else if (i != 0) {
      text += " ";
    }
    text += value;
  }
  return text + "}";
}

std::string StoredDataText(const Constant& constant) {
  return fmt::format("stored {} \"{}\"", constant.raw_bytes, EncodeBase64(constant.stored.view));
}

}  // namespace rewire::text

// SPDX-License-Identifier: Apache-2.0
//
// Separate from the reader, because the reader is part of librewire.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "rewire/base/atomic_file.h"
#include "rewire/base/dtype.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/tensor_files/json_text.h"
#include "rewire/executable_format/tensor_files/safetensors.h"

namespace rewire {

Status WriteSafetensors(const std::string& path, Span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    const std::string context = path + ": tensor '" + named.name + "'";
    const HostTensor& tensor = named.tensor;
    if (!names.insert(named.name).second || named.name == kSafetensorsMetadata || !IsUtf8(named.name)) {
      return Fail(StatusCode::kInvalidArgument, context + ": the name is used twice, reserved or not UTF-8");
    }
    if (SafetensorsDType(tensor.dtype).empty()) {
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
  std::string text = "{";
  std::uint64_t offset = 0;
  for (const NamedTensor* named : order) {
    const std::uint64_t end = offset + named->tensor.bytes.view.size();
    const std::vector<std::int64_t>& shape = named->tensor.shape;
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        text.size() == 1 ? "" : ",", json::Quoted(named->name),
                        SafetensorsDType(named->tensor.dtype), fmt::join(shape.begin(), shape.end(), ","),
                        offset, end);
    offset = end;
  }
  text += '}';
  // Spaces after the header put the data on a cache line, for readers that map the file.
  constexpr std::size_t kDataAlignment = 64;
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

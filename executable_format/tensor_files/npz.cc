// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npz.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/zip_archive.h"

namespace rewire {
namespace {

constexpr std::string_view kEntrySuffix = ".npy";

// `packed_left` is the size that remains of the archive. It stops entries that share their bytes, which could
// otherwise unpack to any size.
Result<NamedTensor> ReadMember(Span<const std::byte> archive, const ZipEntry& entry,
                               std::uint64_t* packed_left) {
  std::string name = entry.name;
  const std::string context = "entry '" + name + "'";
  if (name.size() <= kEntrySuffix.size() ||
      name.compare(name.size() - kEntrySuffix.size(), kEntrySuffix.size(), kEntrySuffix) != 0) {
    return Fail(StatusCode::kInvalidFile, context + " is no .npy file");
  }
  if (entry.packed_size > *packed_left) {
    return Fail(StatusCode::kInvalidFile, context + ": the entries are larger than the archive");
  }
  *packed_left -= entry.packed_size;
  const Result<SharedBytes> bytes = UnpackZipEntry(archive, entry);
  if (!bytes) return Forward(bytes, context);
  Result<HostTensor> tensor = ParseNpy(*bytes);
  if (!tensor) return Forward(tensor, context);
  name.resize(name.size() - kEntrySuffix.size());
  return NamedTensor{std::move(name), std::move(*tensor)};
}

}  // namespace

Result<std::vector<NamedTensor>> ReadNpz(const std::string& path) {
  const Result<SharedBytes> file = ReadFile(path);
  if (!file) return Forward(file);
  const Result<std::vector<ZipEntry>> entries = ReadZipDirectory(file->view);
  if (!entries) return Forward(entries, path + ": not an .npz file");
  std::vector<NamedTensor> tensors;
  std::uint64_t packed_left = file->view.size();
  for (const ZipEntry& entry : *entries) {
    Result<NamedTensor> member = ReadMember(file->view, entry, &packed_left);
    if (!member) return Forward(member, path);
    tensors.push_back(std::move(*member));
  }
  return tensors;
}

Status WriteNpz(const std::string& path, Span<const NamedTensor> tensors, NpzCompression compression) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& member : tensors) {
    if (!names.insert(member.name).second) {
      return Fail(StatusCode::kInvalidArgument, path + ": two tensors are named '" + member.name + "'");
    }
  }
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  ZipWriter archive(&*file);
  const ZipMethod method =
      compression == NpzCompression::kDeflate ? ZipMethod::kDeflated : ZipMethod::kStored;
  for (const NamedTensor& member : tensors) {
    const Result<std::vector<std::byte>> content = SerializeNpy(member.tensor);
    if (!content) return Forward(content, path + ": tensor '" + member.name + "'");
    const Status added = archive.Add(member.name + std::string(kEntrySuffix), *content, method);
    if (!added) return Forward(added, path + ": tensor '" + member.name + "'");
  }
  if (Status finished = archive.Finish(); !finished) return finished;
  return file->Commit();
}

}  // namespace rewire

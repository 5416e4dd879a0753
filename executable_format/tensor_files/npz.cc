// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/tensor_files/npy.h"

namespace rewire {
namespace {

constexpr std::string_view kEntrySuffix = ".npy";

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, FreeSource>;
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

std::string ZipErrorText(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  zip_error_fini(error);
  return text;
}

// The bytes of entry `index`. `compressed_left` is the size that remains of the archive. It stops entries
// that share their bytes, which could otherwise unpack to any size.
Result<SharedBytes> ReadEntry(zip_t* archive, zip_uint64_t index, const zip_stat_t& info,
                              std::uint64_t* compressed_left) {
  // Deflate makes at most 1,032 bytes of one: a larger claim is a lie, and nothing is allocated for it.
  constexpr std::uint64_t kMostExpansion = 1032;
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  if ((info.valid & kNeeded) != kNeeded || info.size / kMostExpansion > info.comp_size ||
      info.comp_size > *compressed_left) {
    return Fail(StatusCode::kInvalidFile, "its size in the archive's directory is wrong");
  }
  *compressed_left -= info.comp_size;
  const Entry entry(zip_fopen_index(archive, index, 0));
  if (entry == nullptr) return Fail(StatusCode::kInvalidFile, zip_strerror(archive));
  std::byte* data = nullptr;
  SharedBytes bytes = AllocateBytes(info.size, &data);
  std::uint64_t done = 0;
  while (done < info.size) {
    const zip_int64_t count = zip_fread(entry.get(), data + done, info.size - done);
    if (count <= 0) {
      return Fail(StatusCode::kInvalidFile, count < 0 ? zip_file_strerror(entry.get()) : "it ends early");
    }
    done += static_cast<std::uint64_t>(count);
  }
  // The checksum is compared only by a read past the end of the data.
  char past_end = 0;
  if (zip_fread(entry.get(), &past_end, 1) != 0) {
    return Fail(StatusCode::kInvalidFile, "it is damaged: its checksum or size differs");
  }
  return bytes;
}

Result<NamedTensor> ReadMember(zip_t* archive, zip_uint64_t index, std::uint64_t* compressed_left) {
  zip_stat_t info;
  zip_stat_init(&info);
  if (zip_stat_index(archive, index, 0, &info) != 0 || (info.valid & ZIP_STAT_NAME) == 0) {
    return Fail(StatusCode::kInvalidFile, fmt::format("entry {}: {}", index, zip_strerror(archive)));
  }
  std::string name = info.name;
  const std::string context = "entry '" + name + "'";
  if (name.size() <= kEntrySuffix.size() ||
      name.compare(name.size() - kEntrySuffix.size(), kEntrySuffix.size(), kEntrySuffix) != 0) {
    return Fail(StatusCode::kInvalidFile, context + " is no .npy file");
  }
  const Result<SharedBytes> bytes = ReadEntry(archive, index, info, compressed_left);
  if (!bytes) return Forward(bytes, context);
  Result<HostTensor> tensor = ParseNpy(*bytes);
  if (!tensor) return Forward(tensor, context);
  name.resize(name.size() - kEntrySuffix.size());
  return NamedTensor{std::move(name), std::move(*tensor)};
}

Status CannotWrite(const std::string& path, const std::string& why) {
  return Fail(StatusCode::kIo, "cannot write '" + path + "': " + why);
}

// The bytes of a source that an archive was written to.
Result<std::vector<std::byte>> ContentOf(zip_source_t* source) {
  zip_stat_t info;
  if (zip_source_stat(source, &info) != 0 || zip_source_open(source) != 0) {
    return Fail(StatusCode::kIo, zip_error_strerror(zip_source_error(source)));
  }
  std::vector<std::byte> bytes(info.size);
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got < 0 || static_cast<std::uint64_t>(got) != bytes.size()) {
    return Fail(StatusCode::kIo, zip_error_strerror(zip_source_error(source)));
  }
  return bytes;
}

// An archive of nothing: the record that ends one, "PK" 5 6, and 18 bytes of zero counts and sizes.
constexpr std::array<std::byte, 22> kEmptyArchive = {std::byte{'P'}, std::byte{'K'}, std::byte{5},
                                                     std::byte{6}};

// 1980-01-01, the earliest date a zip can hold: files with the same content are the same.
constexpr zip_uint16_t kFirstDosDate = (1 << 5) | 1;

Status AddMember(zip_t* archive, const NamedTensor& member, NpzCompression compression,
                 const std::vector<std::byte>& file) {
  const std::string name = member.name + std::string(kEntrySuffix);
  zip_source_t* source = zip_source_buffer(archive, file.data(), file.size(), 0);
  if (source == nullptr) return Fail(StatusCode::kIo, zip_strerror(archive));
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return Fail(StatusCode::kIo, zip_strerror(archive));
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  const zip_int32_t method = compression == NpzCompression::kDeflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  if (zip_set_file_compression(archive, entry, method, 0) != 0 ||
      zip_file_set_dostime(archive, entry, 0, kFirstDosDate, 0) != 0) {
    return Fail(StatusCode::kIo, zip_strerror(archive));
  }
  return {};
}

}  // namespace

Result<std::vector<NamedTensor>> ReadNpz(const std::string& path) {
  // Read by us: so a missing file is reported in the words of every other reader.
  const Result<SharedBytes> file = ReadFile(path);
  if (!file) return Forward(file);
  // libzip takes no bytes at all for an archive without entries.
  if (file->view.empty()) return Fail(StatusCode::kInvalidFile, path + ": not an .npz file: it is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(file->view.data(), file->view.size(), 0, &error);
  if (source == nullptr) return Fail(StatusCode::kIo, path + ": " + ZipErrorText(&error));
  const Archive archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    return Fail(StatusCode::kInvalidFile, path + ": not an .npz file: " + ZipErrorText(&error));
  }
  std::vector<NamedTensor> tensors;
  std::uint64_t compressed_left = file->view.size();
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    Result<NamedTensor> member = ReadMember(archive.get(), static_cast<zip_uint64_t>(i), &compressed_left);
    if (!member) return Forward(member, path);
    tensors.push_back(std::move(*member));
  }
  return tensors;
}

Status WriteNpz(const std::string& path, Span<const NamedTensor> tensors, NpzCompression compression) {
  // libzip reads its sources when it closes, so the files stay here until then.
  std::vector<std::vector<std::byte>> files;
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& member : tensors) {
    if (!names.insert(member.name).second) {
      return Fail(StatusCode::kInvalidArgument, path + ": two tensors are named '" + member.name + "'");
    }
    Result<std::vector<std::byte>> file = SerializeNpy(member.tensor);
    if (!file) return Forward(file, path + ": tensor '" + member.name + "'");
    files.push_back(std::move(*file));
  }
  // The archive is put together in memory and written as every other file is: whole or not at all.
  zip_error_t error;
  zip_error_init(&error);
  const Source content(zip_source_buffer_create(nullptr, 0, 0, &error));
  if (content == nullptr) return CannotWrite(path, ZipErrorText(&error));
  Archive archive(zip_open_from_source(content.get(), ZIP_TRUNCATE, &error));
  if (archive == nullptr) return CannotWrite(path, ZipErrorText(&error));
  zip_source_keep(content.get());  // the archive has taken one reference over
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (Status added = AddMember(archive.get(), tensors[i], compression, files[i]); !added) {
      return Forward(added, path + ": tensor '" + tensors[i].name + "'");
    }
  }
  // An archive without members leaves its source as it was: then what it holds is the end of an empty one.
  if (tensors.empty()) return WriteFileAtomically(path, Span<const std::byte>(kEmptyArchive));
  if (zip_close(archive.get()) != 0) return CannotWrite(path, zip_strerror(archive.get()));
  (void)archive.release();  // closed
  Result<std::vector<std::byte>> bytes = ContentOf(content.get());
  if (!bytes) return CannotWrite(path, bytes.error().message());
  return WriteFileAtomically(path, Span<const std::byte>(*bytes));
}

}  // namespace rewire

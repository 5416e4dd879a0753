// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/tensor_files/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "rewire/base/byte_reader.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire {
namespace {

// Records begin with "PK" and two bytes that tell what they are.
constexpr std::uint32_t kLocalHeader = 0x04034B50;
constexpr std::uint32_t kDirectoryHeader = 0x02014B50;
constexpr std::uint32_t kEnd = 0x06054B50;
constexpr std::uint32_t kZip64End = 0x06064B50;
constexpr std::uint32_t kZip64Locator = 0x07064B50;

constexpr std::size_t kEndSize = 22;      // without the comment
constexpr std::size_t kLocatorSize = 20;  // lies before the end, if the archive is a zip64
constexpr std::size_t kMostComment = 0xFFFF;

constexpr std::uint16_t kEncryptedFlag = 1;
constexpr std::uint16_t kUtf8Flag = 1 << 11;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kInExtra16 = 0xFFFF;
constexpr std::uint32_t kInExtra = 0xFFFFFFFF;  // the value stands in the extra field of zip64
constexpr std::uint16_t kVersion = 20;          // deflate
constexpr std::uint16_t kZip64Version = 45;
constexpr std::uint16_t kFirstDate = (1 << 5) | 1;  // 1980-01-01

Result<std::vector<ZipEntry>> DamagedDirectory() {
  return Fail(StatusCode::kInvalidFile, "the directory of the archive is damaged");
}

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t at = 0;
};

// The record that ends the archive says where the directory lies. A comment of any bytes may follow it, and
// the archive ends with that.
std::optional<std::size_t> FindEnd(Span<const std::byte> archive) {
  if (archive.size() < kEndSize) return std::nullopt;
  const std::size_t last = archive.size() - kEndSize;
  const std::size_t first = last > kMostComment ? last - kMostComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    ByteReader reader(archive.subspan(at, kEndSize));
    if (reader.Read<std::uint32_t>() != kEnd) continue;
    reader.ReadBytes(16);
    if (reader.Read<std::uint16_t>() == last - at) return at;
  }
  return std::nullopt;
}

bool ReadZip64End(Span<const std::byte> archive, std::size_t end, Directory* directory) {
  if (end < kLocatorSize) return false;
  ByteReader locator(archive.subspan(end - kLocatorSize, kLocatorSize));
  if (locator.Read<std::uint32_t>() != kZip64Locator) return false;
  locator.Read<std::uint32_t>();  // the disk
  const auto at = locator.Read<std::uint64_t>();
  if (at > end - kLocatorSize) return false;
  ByteReader reader(archive.subspan(static_cast<std::size_t>(at)));
  if (reader.Read<std::uint32_t>() != kZip64End) return false;
  reader.ReadBytes(28);  // sizes, versions, disks, and the number of entries on this disk
  directory->entries = reader.Read<std::uint64_t>();
  directory->size = reader.Read<std::uint64_t>();
  directory->at = reader.Read<std::uint64_t>();
  return reader.ok();
}

// Values that the directory does not have itself stand in one extra field, in this order.
bool ReadZip64Extra(Span<const std::byte> extra, ZipEntry* entry) {
  ByteReader reader(extra);
  while (reader.ok() && reader.remaining() != 0) {
    const auto kind = reader.Read<std::uint16_t>();
    const Span<const std::byte> content = reader.ReadBytes(reader.Read<std::uint16_t>());
    if (!reader.ok() || kind != kZip64Extra) continue;
    ByteReader values(content);
    for (std::uint64_t* value : {&entry->size, &entry->packed_size, &entry->header_at}) {
      if (*value == kInExtra) *value = values.Read<std::uint64_t>();
    }
    return values.ok();
  }
  return true;
}

bool ReadEntry(ByteReader* reader, ZipEntry* entry) {
  if (reader->Read<std::uint32_t>() != kDirectoryHeader) return false;
  reader->ReadBytes(4);  // versions
  entry->encrypted = (reader->Read<std::uint16_t>() & kEncryptedFlag) != 0;
  entry->method = reader->Read<std::uint16_t>();
  reader->ReadBytes(4);  // time and date
  entry->checksum = reader->Read<std::uint32_t>();
  entry->packed_size = reader->Read<std::uint32_t>();
  entry->size = reader->Read<std::uint32_t>();
  const auto name_size = reader->Read<std::uint16_t>();
  const auto extra_size = reader->Read<std::uint16_t>();
  const auto comment_size = reader->Read<std::uint16_t>();
  reader->ReadBytes(8);  // disk and attributes
  entry->header_at = reader->Read<std::uint32_t>();
  entry->name = std::string(reader->ReadString(name_size));
  const Span<const std::byte> extra = reader->ReadBytes(extra_size);
  reader->ReadBytes(comment_size);
  return reader->ok() && ReadZip64Extra(extra, entry);
}

uInt Chunk(std::uint64_t left) {
  return static_cast<uInt>(std::min<std::uint64_t>(left, std::numeric_limits<uInt>::max()));
}

Bytef* Pointer(const std::byte* bytes) {
  return const_cast<Bytef*>(
      reinterpret_cast<const Bytef*>(bytes));  // zlib reads it, but its type is not const
}

std::uint32_t Checksum(Span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// True if `packed` is one deflated stream that gives exactly `size` bytes.
bool Inflate(Span<const std::byte> packed, std::byte* out, std::uint64_t size) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    std::byte past_end{};  // where there is no room, so that a stream that goes on is told from one that ends
    const uInt in = Chunk(packed.size() - read);
    const uInt room = Chunk(size - written);
    stream.next_in = Pointer(packed.data() + read);
    stream.avail_in = in;
    stream.next_out = Pointer(room != 0 ? out + written : &past_end);
    stream.avail_out = std::max<uInt>(room, 1);
    code = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += std::max<uInt>(room, 1) - stream.avail_out;
    if (written > size) code = Z_DATA_ERROR;
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END && written == size && read == packed.size();
}

Result<std::vector<std::byte>> Deflate(Span<const std::byte> content) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return Fail(StatusCode::kOutOfMemory, "zlib has no memory to compress");
  }
  std::vector<std::byte> packed(deflateBound(&stream, content.size()));
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    const uInt in = Chunk(content.size() - read);
    const uInt room = Chunk(packed.size() - written);
    stream.next_in = Pointer(content.data() + read);
    stream.avail_in = in;
    stream.next_out = Pointer(packed.data() + written);
    stream.avail_out = room;
    code = deflate(&stream, read + in == content.size() ? Z_FINISH : Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  packed.resize(written);
  return packed;
}

// The little-endian bytes of a record.
class Record {
 public:
  template <typename T>
  Record& Put(std::common_type_t<T> value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Record& Put(const std::string& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
    return *this;
  }
  Span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Writes the part that both headers of an entry have, from the flags to the length of the name.
void PutDescription(Record* record, const ZipEntry& entry, bool is_long) {
  record->Put<std::uint16_t>(kUtf8Flag).Put<std::uint16_t>(entry.method);
  record->Put<std::uint16_t>(0).Put<std::uint16_t>(kFirstDate).Put<std::uint32_t>(entry.checksum);
  record->Put<std::uint32_t>(is_long ? kInExtra : static_cast<std::uint32_t>(entry.packed_size));
  record->Put<std::uint32_t>(is_long ? kInExtra : static_cast<std::uint32_t>(entry.size));
  record->Put<std::uint16_t>(static_cast<std::uint16_t>(entry.name.size()));
}

}  // namespace

Result<std::vector<ZipEntry>> ReadZipDirectory(Span<const std::byte> archive) {
  const std::optional<std::size_t> end = FindEnd(archive);
  if (!end) return Fail(StatusCode::kInvalidFile, "Not a zip archive");
  ByteReader reader(archive.subspan(*end));
  reader.ReadBytes(10);  // the mark, disks, and the number of entries on this disk
  Directory directory;
  directory.entries = reader.Read<std::uint16_t>();
  directory.size = reader.Read<std::uint32_t>();
  directory.at = reader.Read<std::uint32_t>();
  if ((directory.entries == kInExtra16 || directory.size == kInExtra || directory.at == kInExtra) &&
      !ReadZip64End(archive, *end, &directory)) {
    return DamagedDirectory();
  }
  ByteReader before_end(archive.subspan(0, *end));
  before_end.ReadBytes(directory.at);
  ByteReader entries(before_end.ReadBytes(directory.size));
  if (!before_end.ok()) return DamagedDirectory();
  std::vector<ZipEntry> read;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    ZipEntry entry;
    if (!ReadEntry(&entries, &entry)) return DamagedDirectory();
    read.push_back(std::move(entry));
  }
  if (entries.remaining() != 0) return DamagedDirectory();
  return read;
}

Result<SharedBytes> UnpackZipEntry(Span<const std::byte> archive, const ZipEntry& entry) {
  if (entry.encrypted) return Fail(StatusCode::kUnsupported, "it is encrypted");
  const bool deflated = entry.method == static_cast<std::uint16_t>(ZipMethod::kDeflated);
  if (!deflated && entry.method != static_cast<std::uint16_t>(ZipMethod::kStored)) {
    return Fail(
        StatusCode::kUnsupported,
        fmt::format("it is compressed by method {}; stored and deflated entries are read", entry.method));
  }
  // Deflate makes at most 1,032 bytes of one: a larger claim is a lie, and nothing is allocated for it.
  constexpr std::uint64_t kMostExpansion = 1032;
  if (deflated ? entry.size / kMostExpansion > entry.packed_size : entry.size != entry.packed_size) {
    return Fail(StatusCode::kInvalidFile, "its size in the archive's directory is wrong");
  }
  ByteReader header(
      archive.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(entry.header_at, archive.size()))));
  const bool marked = header.Read<std::uint32_t>() == kLocalHeader;
  header.ReadBytes(22);  // described in the directory
  const auto name_size = header.Read<std::uint16_t>();
  const auto extra_size = header.Read<std::uint16_t>();
  header.ReadBytes(std::uint64_t{name_size} + extra_size);
  const Span<const std::byte> packed = header.ReadBytes(entry.packed_size);
  if (!marked || !header.ok())
    return Fail(StatusCode::kInvalidFile, "its header is damaged, or it ends early");
  std::byte* data = nullptr;
  SharedBytes content = AllocateBytes(static_cast<std::size_t>(entry.size), &data);
  bool whole = true;
  if (deflated) {
    whole = Inflate(packed, data, entry.size);
  } else {
    std::copy(packed.begin(), packed.end(), data);
  }
  if (!whole || Checksum(content.view) != entry.checksum) {
    return Fail(StatusCode::kInvalidFile, "it is damaged: its checksum or size differs");
  }
  return content;
}

bool ZipWriter::IsLong(const ZipEntry& entry) const {
  return std::max({entry.size, entry.packed_size, entry.header_at}) >= zip64_from_;
}

Status ZipWriter::Write(Span<const std::byte> bytes) {
  position_ += bytes.size();
  return file_.Write(bytes);
}

Status ZipWriter::Add(const std::string& name, Span<const std::byte> content, ZipMethod method) {
  if (name.size() > std::numeric_limits<std::uint16_t>::max()) {
    return Fail(StatusCode::kUnsupported, "its name is too long for a zip archive");
  }
  std::vector<std::byte> packed;
  Span<const std::byte> bytes = content;
  if (method == ZipMethod::kDeflated) {
    Result<std::vector<std::byte>> done = Deflate(content);
    if (!done) return Forward(done);
    packed = std::move(*done);
    bytes = packed;
  }
  ZipEntry entry;
  entry.name = name;
  entry.method = static_cast<std::uint16_t>(method);
  entry.checksum = Checksum(content);
  entry.packed_size = bytes.size();
  entry.size = content.size();
  entry.header_at = position_;
  const bool is_long = IsLong(entry);
  Record header;
  header.Put<std::uint32_t>(kLocalHeader).Put<std::uint16_t>(is_long ? kZip64Version : kVersion);
  PutDescription(&header, entry, is_long);
  header.Put<std::uint16_t>(is_long ? 20 : 0).Put(name);
  if (is_long) {
    header.Put<std::uint16_t>(kZip64Extra).Put<std::uint16_t>(16);
    header.Put<std::uint64_t>(entry.size).Put<std::uint64_t>(entry.packed_size);
  }
  entries_.push_back(std::move(entry));
  if (Status written = Write(header.bytes()); !written) return written;
  return Write(bytes);
}

Status ZipWriter::Finish() {
  const std::uint64_t at = position_;
  for (const ZipEntry& entry : entries_) {
    const bool is_long = IsLong(entry);
    const std::uint16_t version = is_long ? kZip64Version : kVersion;
    Record header;
    header.Put<std::uint32_t>(kDirectoryHeader).Put<std::uint16_t>(version).Put<std::uint16_t>(version);
    PutDescription(&header, entry, is_long);
    header.Put<std::uint16_t>(is_long ? 28 : 0).Put<std::uint16_t>(0);         // extra field, comment
    header.Put<std::uint16_t>(0).Put<std::uint16_t>(0).Put<std::uint32_t>(0);  // disk, attributes
    header.Put<std::uint32_t>(is_long ? kInExtra : static_cast<std::uint32_t>(entry.header_at))
        .Put(entry.name);
    if (is_long) {
      header.Put<std::uint16_t>(kZip64Extra).Put<std::uint16_t>(24).Put<std::uint64_t>(entry.size);
      header.Put<std::uint64_t>(entry.packed_size).Put<std::uint64_t>(entry.header_at);
    }
    if (Status written = Write(header.bytes()); !written) return written;
  }
  const std::uint64_t size = position_ - at;
  const std::uint64_t count = entries_.size();
  const bool is_long = std::max(at, size) >= zip64_from_ || count >= kInExtra16;
  Record end;
  if (is_long) {
    end.Put<std::uint32_t>(kZip64End).Put<std::uint64_t>(44);  // the size of what follows
    end.Put<std::uint16_t>(kZip64Version).Put<std::uint16_t>(kZip64Version);
    end.Put<std::uint32_t>(0).Put<std::uint32_t>(0).Put<std::uint64_t>(count).Put<std::uint64_t>(count);
    end.Put<std::uint64_t>(size).Put<std::uint64_t>(at);
    end.Put<std::uint32_t>(kZip64Locator)
        .Put<std::uint32_t>(0)
        .Put<std::uint64_t>(position_)
        .Put<std::uint32_t>(1);
  }
  const std::uint16_t short_count = is_long ? kInExtra16 : static_cast<std::uint16_t>(count);
  end.Put<std::uint32_t>(kEnd).Put<std::uint16_t>(0).Put<std::uint16_t>(0);
  end.Put<std::uint16_t>(short_count).Put<std::uint16_t>(short_count);
  end.Put<std::uint32_t>(is_long ? kInExtra : static_cast<std::uint32_t>(size));
  end.Put<std::uint32_t>(is_long ? kInExtra : static_cast<std::uint32_t>(at)).Put<std::uint16_t>(0);
  return Write(end.bytes());
}

}  // namespace rewire

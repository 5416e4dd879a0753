// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/container.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/hash.h"

namespace rewire::container {

namespace {

bool AllZero(Span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

Status CheckMagic(const FileHeader& header, std::size_t size) {
  if (size >= kMagic.size() && header.magic == kMagic) return {};
  if (size >= 4 && std::equal(kMagic.begin(), kMagic.begin() + 4, header.magic.begin())) {
    return Damaged("the file was changed by a transfer as text: copy it again as binary");
  }
  return Damaged("this is not a Rewire executable: it does not start with the bytes 89 'RWX' of one");
}

Result<FileHeader> ReadHeader(Span<const std::byte> file) {
  FileHeader header{};
  if (!file.empty()) std::memcpy(&header, file.data(), std::min(file.size(), sizeof(header)));
  if (Status magic = CheckMagic(header, file.size()); !magic) return Forward(magic);
  if (file.size() < sizeof(header)) {
    return Damaged("the file is cut off: it has {} bytes, its header alone takes {}", file.size(),
                   sizeof(header));
  }
  if (header.major != kMajorVersion) {
    return Fail(StatusCode::kUnsupported,
                "the file has format version {}.{}, this library reads version {}.x: {}", header.major,
                header.minor, kMajorVersion,
                header.major > kMajorVersion ? "use a newer library" : "the file is damaged");
  }
  if (header.file_size != file.size()) {
    return Damaged("the file is {}: its header says {} bytes, it has {}",
                   header.file_size > file.size() ? "cut off" : "too long", header.file_size, file.size());
  }
  return header;
}

// Checks one entry and the padding before it. `end` is where the previous section ended, and is moved on.
Result<FoundSection> LocateSection(Span<const std::byte> file, const FileHeader& header,
                                   const SectionEntry& entry, std::uint64_t* end) {
  const SectionInfo* info = FindSection(entry.id);
  const Message name =
      info != nullptr ? Message{"section '{}'", info->name} : Message{"section {}", entry.id};
  if (info != nullptr && entry.flags != info->flags) {
    return Damaged("{} has flags {}, expected {}", name, entry.flags, info->flags);
  }
  if (info == nullptr && (entry.flags & kSectionRequired) != 0) {
    return Fail(StatusCode::kUnsupported,
                "the file, of format version {}.{}, needs {}, which this library, of format version {}.{}, "
                "does not know: use a newer library",
                header.major, header.minor, name, kMajorVersion, kMinorVersion);
  }
  const std::optional<std::uint64_t> offset = CheckedAlignUp(*end, kSectionAlignment);
  if (!offset || entry.offset != *offset || entry.offset > file.size() ||
      entry.size > file.size() - entry.offset) {
    return Damaged("{} is at offset {} with {} bytes; expected it at {}, in a file of {}", name, entry.offset,
                   entry.size, offset.value_or(0), file.size());
  }
  if (!AllZero(file.subspan(*end, entry.offset - *end))) {
    return Damaged("the padding before {} at offset {} is not zero", name, entry.offset);
  }
  *end = entry.offset + entry.size;
  FoundSection found{info, entry, file.subspan(entry.offset, entry.size)};
  if ((entry.flags & kSectionOwnChecksums) != 0) {
    if (entry.checksum != 0) return Damaged("{} has a checksum, expected 0", name);
  } else if (const std::uint64_t checksum = Hash64(found.bytes); checksum != entry.checksum) {
    return Damaged("{} at offset {} is damaged: its bytes have checksum {}, its entry says {}", name,
                   entry.offset, HashText(checksum), HashText(entry.checksum));
  }
  return found;
}

}  // namespace

Status ReadSections(Span<const std::byte> file, Array<FoundSection>* found) {
  const Result<FileHeader> read = ReadHeader(file);
  if (!read) return Forward(read);
  const FileHeader& header = *read;
  const std::size_t entries_size = header.section_count * sizeof(SectionEntry);
  if (header.section_count > kMaxSections || entries_size + 8 > file.size() - sizeof(FileHeader)) {
    return Damaged(
        "the header names {} sections; a file has at most {}, and this one of {} bytes has room for {}",
        header.section_count, kMaxSections, file.size(),
        (file.size() - sizeof(FileHeader)) / sizeof(SectionEntry));
  }
  const std::size_t directory_size = sizeof(FileHeader) + entries_size;
  std::uint64_t checksum;
  std::memcpy(&checksum, file.data() + directory_size, sizeof(checksum));
  if (checksum != Hash64(file.subspan(0, directory_size))) {
    return Damaged("the header or section table is damaged: its checksum does not match");
  }

  std::uint64_t end = directory_size + sizeof(checksum);
  for (std::size_t i = 0; i < header.section_count; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, file.data() + sizeof(FileHeader) + i * sizeof(entry), sizeof(entry));
    for (const FoundSection& earlier : *found) {
      if (earlier.entry.id == entry.id) return Damaged("section {} is there twice", entry.id);
    }
    Result<FoundSection> section = LocateSection(file, header, entry, &end);
    if (!section) return Forward(section);
    found->push_back(*section);
  }
  if (end != file.size()) {
    return Damaged("{} bytes follow the last section", file.size() - end);
  }
  return {};
}

Result<Array<Span<const std::byte>>> SplitData(Span<const std::byte> data, Span<const std::uint64_t> sizes,
                                               const Array<Constant>* constants, bool verify) {
  const auto text = [constants](std::size_t i) {
    return constants == nullptr ? Message{"blob {}", i}
                                : Message{"constant {} ('{}')", i, (*constants)[i].name};
  };
  Array<Span<const std::byte>> items(sizes.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t size = sizes[i];
    if (size == 0) continue;
    const std::optional<std::uint64_t> start = CheckedAlignUp(end, kDataAlignment);
    if (!start || *start > data.size() || size > data.size() - *start) {
      return Damaged("{} has {} bytes at {}, section 'data' has {}", text(i), size, start.value_or(0),
                     data.size());
    }
    if (verify && !AllZero(data.subspan(end, *start - end))) {
      return Damaged("the padding before the bytes of {} is not zero", text(i));
    }
    items[i] = data.subspan(*start, size);
    end = *start + size;
  }
  if (end == data.size()) return items;
  return Damaged("the {} have {} bytes, section 'data' has {}", constants == nullptr ? "blobs" : "constants",
                 end, data.size());
}

}  // namespace rewire::container

// SPDX-License-Identifier: Apache-2.0
#include "executable_format/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked_math.h"
#include "base/hash.h"
#include "executable_format/layout.h"
#include "executable_format/sections.h"

namespace rewire {
namespace {

struct FoundSection {
  const SectionInfo* info;  // null: unknown and not required
  SectionEntry entry;
  Span<const std::byte> bytes;
};

tl::unexpected<Error> Damaged(const Message& what) { return Fail(StatusCode::kInvalidFile, what); }

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
    return Damaged(
        {"the file is cut off: it has ", file.size(), " bytes, its header alone takes ", sizeof(header)});
  }
  if (header.major != kMajorVersion) {
    return Fail(StatusCode::kUnsupported,
                {"the file has format version ", header.major, ".", header.minor,
                 ", this library reads version ", kMajorVersion,
                 ".x: ", header.major > kMajorVersion ? "use a newer library" : "the file is damaged"});
  }
  if (header.file_size != file.size()) {
    return Damaged({"the file is ", header.file_size > file.size() ? "cut off" : "too long",
                    ": its header says ", header.file_size, " bytes, it has ", file.size()});
  }
  return header;
}

// Checks one entry and the padding before it. `end` is where the previous section ended, and is moved on.
Result<FoundSection> LocateSection(Span<const std::byte> file, const FileHeader& header,
                                   const SectionEntry& entry, std::uint64_t* end) {
  const SectionInfo* info = FindSection(entry.id);
  const std::string name =
      info != nullptr ? Concat({"section '", info->name, "'"}) : Concat({"section ", entry.id});
  if (info != nullptr && entry.flags != info->flags) {
    return Damaged({name, " has flags ", entry.flags, ", expected ", info->flags});
  }
  if (info == nullptr && (entry.flags & kSectionRequired) != 0) {
    return Fail(StatusCode::kUnsupported,
                {"the file, of format version ", header.major, ".", header.minor, ", needs ", name,
                 ", which this library, of format version ", kMajorVersion, ".", kMinorVersion,
                 ", does not know: use a newer library"});
  }
  const std::optional<std::uint64_t> offset = CheckedAlignUp(*end, kSectionAlignment);
  if (!offset || entry.offset != *offset || entry.offset > file.size() ||
      entry.size > file.size() - entry.offset) {
    return Damaged({name, " is at offset ", entry.offset, " with ", entry.size, " bytes; expected it at ",
                    offset.value_or(0), ", in a file of ", file.size()});
  }
  if (!AllZero(file.subspan(*end, entry.offset - *end))) {
    return Damaged({"the padding before ", name, " at offset ", entry.offset, " is not zero"});
  }
  *end = entry.offset + entry.size;
  FoundSection found{info, entry, file.subspan(entry.offset, entry.size)};
  if ((entry.flags & kSectionOwnChecksums) != 0) {
    if (entry.checksum != 0) return Damaged({name, " has a checksum, expected 0"});
  } else if (const std::uint64_t checksum = Hash64(found.bytes); checksum != entry.checksum) {
    return Damaged(
        fmt::format("{} at offset {} is damaged: its bytes have checksum {:016x}, its entry says {:016x}",
                    name, entry.offset, checksum, entry.checksum));
  }
  return found;
}

Result<std::vector<FoundSection>> ReadDirectory(Span<const std::byte> file, const FileHeader& header) {
  const std::size_t entries_size = header.section_count * sizeof(SectionEntry);
  if (header.section_count > kMaxSections || entries_size + 8 > file.size() - sizeof(FileHeader)) {
    return Damaged({"the header names ", header.section_count, " sections; a file has at most ", kMaxSections,
                    ", and this one of ", file.size(), " bytes has room for ",
                    (file.size() - sizeof(FileHeader)) / sizeof(SectionEntry)});
  }
  const std::size_t directory_size = sizeof(FileHeader) + entries_size;
  std::uint64_t checksum;
  std::memcpy(&checksum, file.data() + directory_size, sizeof(checksum));
  if (checksum != Hash64(file.subspan(0, directory_size))) {
    return Damaged("the header or section table is damaged: its checksum does not match");
  }

  std::vector<FoundSection> found;
  std::uint64_t end = directory_size + sizeof(checksum);
  for (std::size_t i = 0; i < header.section_count; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, file.data() + sizeof(FileHeader) + i * sizeof(entry), sizeof(entry));
    for (const FoundSection& earlier : found) {
      if (earlier.entry.id == entry.id) return Damaged({"section ", entry.id, " is there twice"});
    }
    Result<FoundSection> section = LocateSection(file, header, entry, &end);
    if (!section) return Forward(section);
    found.push_back(*section);
  }
  if (end != file.size()) {
    return Damaged({file.size() - end, " bytes follow the last section"});
  }
  return found;
}

// What the sections say about each other, until all are read.
struct Pieces {
  std::vector<std::uint64_t> stored_sizes;  // of the constants
  std::vector<std::uint32_t> code_words;    // of the functions
  Span<const std::byte> code;
  Span<const std::byte> data;
};

void Decode(SectionId id, ArchiveReader& archive, Module& module, Pieces& pieces) {
  switch (id) {
    case SectionId::kMetadata:
      return sections::Metadata(archive, module);
    case SectionId::kDevices:
      return sections::Devices(archive, module);
    case SectionId::kSymbols:
      return sections::Texts(archive, module.symbols);
    case SectionId::kStrings:
      return sections::Texts(archive, module.strings);
    case SectionId::kConstants:
      return sections::Constants(archive, module.constants, pieces.stored_sizes);
    case SectionId::kKernels:
      return sections::Kernels(archive, module);
    case SectionId::kFunctions:
      return sections::Functions(archive, module, pieces.code_words);
    case SectionId::kCode:
      pieces.code = archive.ReadBytes(archive.remaining());
      return;
    case SectionId::kNotes:
      return sections::Notes(archive, module);
    case SectionId::kData:
      pieces.data = archive.ReadBytes(archive.remaining());
      return;
  }
}

Status SplitCode(Module& module, const Pieces& pieces) {
  std::uint64_t total = 0;
  for (std::uint32_t words : pieces.code_words) total += words;
  if (total != pieces.code.size() / 4 || pieces.code.size() % 4 != 0) {
    return Damaged(
        {"the functions have ", total, " words of code, section 'code' has ", pieces.code.size(), " bytes"});
  }
  const std::byte* position = pieces.code.data();
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    std::vector<std::uint32_t>& code = module.functions[i].code;
    if (pieces.code_words[i] == 0) continue;
    code.resize(pieces.code_words[i]);
    std::memcpy(code.data(), position, code.size() * 4);
    position += code.size() * 4;
  }
  return {};
}

Status SplitData(Module& module, const Pieces& pieces, const SharedBytes& file, bool verify) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    Constant& constant = module.constants[i];
    const std::uint64_t size = pieces.stored_sizes[i];
    if (size != 0) {
      const std::optional<std::uint64_t> start = CheckedAlignUp(end, kDataAlignment);
      if (!start || *start > pieces.data.size() || size > pieces.data.size() - *start) {
        return Damaged({"constant ", i, " ('", constant.name, "') has ", size, " bytes at ",
                        start.value_or(0), ", section 'data' has ", pieces.data.size()});
      }
      if (verify && !AllZero(pieces.data.subspan(end, *start - end))) {
        return Damaged({"the padding before the bytes of constant ", i, " is not zero"});
      }
      constant.stored = {pieces.data.subspan(*start, size), file.owner, file.mapped};
      end = *start + size;
    }
    if (const std::uint64_t checksum = verify ? Hash64(constant.stored.view) : constant.checksum;
        checksum != constant.checksum) {
      return Damaged(fmt::format(
          "constant {} ('{}') is damaged: its bytes have checksum {:016x}, its record says {:016x}", i,
          constant.name, checksum, constant.checksum));
    }
  }
  if (end != pieces.data.size()) {
    return Damaged({"the constants have ", end, " bytes, section 'data' has ", pieces.data.size()});
  }
  return {};
}

}  // namespace

Result<Module> ReadModule(const SharedBytes& bytes, const OpenOptions& options) {
  Result<FileHeader> header = ReadHeader(bytes.view);
  if (!header) return Forward(header);
  Result<std::vector<FoundSection>> found = ReadDirectory(bytes.view, *header);
  if (!found) return Forward(found);

  Module module;
  module.devices.clear();
  Pieces pieces;
  // In the order of the table, not of the file: a section may lean on those before it.
  for (const SectionInfo& info : kSections) {
    for (const FoundSection& section : *found) {
      if (section.info != &info) continue;
      ArchiveReader archive(section.bytes);
      Decode(info.id, archive, module, pieces);
      if (archive.ok() && archive.remaining() != 0) archive.Reject("bytes follow its last record");
      if (!archive.ok()) {
        return Damaged({"section '", info.name, "' at offset ", section.entry.offset,
                        " is malformed at its byte ", archive.position(), " of ", section.bytes.size(), ": ",
                        archive.reason()});
      }
    }
  }
  if (Status split = SplitCode(module, pieces); !split) return Forward(split);
  if (Status split = SplitData(module, pieces, bytes, options.verify_data); !split) return Forward(split);
  return module;
}

}  // namespace rewire

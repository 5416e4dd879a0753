// SPDX-License-Identifier: Apache-2.0
#include "executable_format/writer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/checked_math.h"
#include "base/hash.h"
#include "executable_format/layout.h"
#include "executable_format/sections.h"

namespace rewire {
namespace {

struct Section {
  const SectionInfo* info;
  std::vector<std::byte> bytes;  // empty for data, which is written from the constants
  SectionEntry entry;
};

Status FillChecksums(std::vector<Constant>& constants) {
  for (std::size_t i = 0; i < constants.size(); ++i) {
    Constant& constant = constants[i];
    const std::uint64_t checksum = Hash64(constant.stored.view);
    if (constant.checksum != 0 && constant.checksum != checksum) {
      return Fail(
          StatusCode::kInvalidFile,
          fmt::format(
              "constant {} ('{}') is damaged: its bytes have checksum {:016x}, its record says {:016x}", i,
              constant.name, checksum, constant.checksum));
    }
    constant.checksum = checksum;
  }
  return {};
}

Result<std::uint64_t> DataSize(const std::vector<Constant>& constants) {
  std::uint64_t size = 0;
  for (const Constant& constant : constants) {
    std::optional<std::uint64_t> start = CheckedAlignUp(size, kDataAlignment);
    std::optional<std::uint64_t> end;
    if (start) end = CheckedAdd<std::uint64_t>(*start, constant.stored.view.size());
    if (!end)
      return Fail(StatusCode::kInvalidArgument, "the constants together are larger than a file can be");
    if (!constant.stored.view.empty()) size = *end;
  }
  return size;
}

// True when the section holds nothing and is left out.
bool IsAbsent(SectionId id, const Module& module) {
  switch (id) {
    case SectionId::kMetadata:
      return module.metadata.empty();
    case SectionId::kDevices:
      return module.devices.empty();
    case SectionId::kSymbols:
      return module.symbols.empty();
    case SectionId::kStrings:
      return module.strings.empty();
    case SectionId::kConstants:
      return module.constants.empty();
    case SectionId::kKernels:
      return module.kernels.empty();
    case SectionId::kFunctions:
      return module.functions.empty();
    case SectionId::kCode:
      for (const Function& function : module.functions) {
        if (!function.code.empty()) return false;
      }
      return true;
    case SectionId::kNotes:
      for (const Function& function : module.functions) {
        if (!function.notes.empty()) return false;
      }
      return true;
    case SectionId::kData:
      for (const Constant& constant : module.constants) {
        if (!constant.stored.view.empty()) return false;
      }
      return true;
  }
  return true;
}

void Encode(SectionId id, const Module& module, const std::vector<Constant>& constants,
            ArchiveWriter& archive) {
  switch (id) {
    case SectionId::kMetadata:
      return sections::Metadata(archive, module);
    case SectionId::kDevices:
      return sections::Devices(archive, module);
    case SectionId::kSymbols:
      return sections::Texts(archive, module.symbols);
    case SectionId::kStrings:
      return sections::Texts(archive, module.strings);
    case SectionId::kConstants: {
      std::vector<std::uint64_t> sizes;
      sizes.reserve(constants.size());
      for (const Constant& constant : constants) sizes.push_back(constant.stored.view.size());
      return sections::Constants(archive, constants, sizes);
    }
    case SectionId::kKernels:
      return sections::Kernels(archive, module);
    case SectionId::kFunctions: {
      std::vector<std::uint32_t> words;
      for (const Function& function : module.functions) {
        words.push_back(static_cast<std::uint32_t>(function.code.size()));
      }
      return sections::Functions(archive, module, words);
    }
    case SectionId::kCode:
      for (const Function& function : module.functions) {
        const auto* bytes = reinterpret_cast<const std::byte*>(function.code.data());
        archive.bytes().insert(archive.bytes().end(), bytes, bytes + function.code.size() * 4);
      }
      return;
    case SectionId::kNotes:
      return sections::Notes(archive, module);
    case SectionId::kData:
      return;
  }
}

std::vector<std::byte> Directory(const std::vector<Section>& sections) {
  const std::size_t checked_size = sizeof(FileHeader) + sections.size() * sizeof(SectionEntry);
  FileHeader header{kMagic, kMajorVersion, kMinorVersion, static_cast<std::uint32_t>(sections.size()), 0};
  header.file_size = sections.empty() ? checked_size + sizeof(std::uint64_t)
                                      : sections.back().entry.offset + sections.back().entry.size;
  std::vector<std::byte> directory(checked_size + sizeof(std::uint64_t));
  std::memcpy(directory.data(), &header, sizeof(header));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::memcpy(directory.data() + sizeof(header) + i * sizeof(SectionEntry), &sections[i].entry,
                sizeof(SectionEntry));
  }
  const std::uint64_t checksum = Hash64({directory.data(), checked_size});
  std::memcpy(directory.data() + checked_size, &checksum, sizeof(checksum));
  return directory;
}

// Gives every section its place and checksum.
Status Place(std::vector<Section>& sections, std::uint64_t data_size) {
  std::uint64_t position = sizeof(FileHeader) + sections.size() * sizeof(SectionEntry) + 8;
  for (Section& section : sections) {
    const bool is_data = section.info->id == SectionId::kData;
    std::optional<std::uint64_t> offset = CheckedAlignUp(position, kSectionAlignment);
    const std::uint64_t size = is_data ? data_size : section.bytes.size();
    std::optional<std::uint64_t> end;
    if (offset) end = CheckedAdd(*offset, size);
    if (!end)
      return Fail(StatusCode::kInvalidArgument, "the file would be larger than its 64-bit sizes can say");
    section.entry = {static_cast<std::uint32_t>(section.info->id), section.info->flags, *offset, size,
                     is_data ? 0 : Hash64(section.bytes)};
    position = *end;
  }
  return {};
}

// Passes the whole file on, piece by piece, so that constants are not copied first.
template <typename Write>
Status Emit(const Module& module, Write&& write) {
  std::vector<Constant> constants = module.constants;
  if (Status filled = FillChecksums(constants); !filled) return filled;
  Result<std::uint64_t> data_size = DataSize(constants);
  if (!data_size) return Forward(data_size);

  std::vector<Section> sections;
  for (const SectionInfo& info : kSections) {
    if (IsAbsent(info.id, module)) continue;
    ArchiveWriter archive;
    Encode(info.id, module, constants, archive);
    if (!archive.ok()) {
      return Fail(StatusCode::kInvalidArgument,
                  {"section '", info.name, "' has a string or list of more than 2^32 - 1 elements"});
    }
    sections.push_back({&info, std::move(archive.bytes()), {}});
  }
  if (Status placed = Place(sections, *data_size); !placed) return placed;

  std::uint64_t position = 0;
  auto put = [&](Span<const std::byte> bytes) -> Status {
    position += bytes.size();
    return write(bytes);
  };
  auto pad_to = [&](std::uint64_t offset) -> Status {
    static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
    return put(Span<const std::byte>(kZeros.data(), static_cast<std::size_t>(offset - position)));
  };
  if (Status status = put(Directory(sections)); !status) return status;
  for (const Section& section : sections) {
    if (Status status = pad_to(section.entry.offset); !status) return status;
    if (Status status = put(section.bytes); !status) return status;
    if (section.info->id != SectionId::kData) continue;
    for (const Constant& constant : constants) {
      if (constant.stored.view.empty()) continue;
      if (Status status = pad_to(*CheckedAlignUp(position, kDataAlignment)); !status) return status;
      if (Status status = put(constant.stored.view); !status) return status;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> SerializeModule(const Module& module) {
  std::vector<std::byte> file;
  Status emitted = Emit(module, [&](Span<const std::byte> bytes) -> Status {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  });
  if (!emitted) return Forward(emitted);
  return file;
}

Status WriteModule(const Module& module, const std::string& path) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  Status emitted = Emit(module, [&](Span<const std::byte> bytes) { return file->Write(bytes); });
  if (!emitted) return emitted;
  return file->Commit();
}

}  // namespace rewire

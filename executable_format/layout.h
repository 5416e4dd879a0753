// SPDX-License-Identifier: Apache-2.0
// The container: how an .rwx file is divided. docs/format.md describes every byte; sections.h what the
// sections hold. All integers are little-endian.
//
//   0   magic (8) | major u16 | minor u16 | section count u32 | file size u64
//   24  section entries, 32 bytes each: id u32 | flags u32 | offset u64 | size u64 | checksum u64
//   ... checksum u64 of everything before it
//   ... zeros up to a multiple of 64, then a section, zeros up to a multiple of 64, ...
//
// The file ends with its last section.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rewire {

static_assert(std::endian::native == std::endian::little,
              "files and code words are used as they lie in memory, which must be little-endian");

// Like PNG's magic: a byte above 0x7F, both line ends and a DOS end-of-file reveal a transfer in text mode.
inline constexpr std::array<unsigned char, 8> kMagic = {0x89, 'R', 'W', 'X', '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint16_t kMajorVersion = 1;
inline constexpr std::uint16_t kMinorVersion = 0;

inline constexpr std::uint64_t kSectionAlignment = 64;
// Constants in the data section start at multiples of this, relative to the section's start.
inline constexpr std::uint64_t kDataAlignment = 64;

struct FileHeader {
  std::array<unsigned char, 8> magic;
  std::uint16_t major;
  std::uint16_t minor;
  std::uint32_t section_count;
  std::uint64_t file_size;
};
static_assert(sizeof(FileHeader) == 24);

enum SectionFlags : std::uint32_t {
  kSectionRequired = 1,  // a reader that does not know this section must refuse the file
  // The checksum in the entry is 0. The section's items have their own checksums, which need not be checked
  // at open.
  kSectionOwnChecksums = 2,
};

struct SectionEntry {
  std::uint32_t id;
  std::uint32_t flags;
  std::uint64_t offset;  // from the start of the file
  std::uint64_t size;
  std::uint64_t checksum;  // XXH3-64 of the section's bytes
};
static_assert(sizeof(SectionEntry) == 32);

inline constexpr std::uint32_t kMaxSections = 64;

enum class SectionId : std::uint32_t {
  kMetadata = 1,
  kDevices = 2,
  kSymbols = 3,
  kStrings = 4,
  kConstants = 5,
  kKernels = 6,
  kFunctions = 7,
  kCode = 8,
  kNotes = 9,
  kData = 10,
  // Sections of a bundle, which has only these and data.
  kModels = 11,
  kBlobs = 12,
  kSymbolLimits = 13,
  kDeviceCode = 14,
  // A container in itself. Its sections count as the file's.
  kCompressed = 15,
};

// The largest size that section `compressed` may state for its content, by the bytes of its frames. Such
// sections of real models are a fifth to a tenth of their content. The limit keeps a small file from taking
// much memory.
constexpr std::uint64_t MostDecompressedBytes(std::uint64_t frames) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  return frames < kMost / 64 ? frames * 64 : kMost;
}

struct SectionInfo {
  SectionId id;
  std::string_view name;
  std::uint32_t flags;
};

// Every section of this version, in the order in which a file holds them. A section without content is left
// out. Data comes last, so that nothing that is read at open lies behind it. Ids are never reused.
inline constexpr std::array<SectionInfo, 15> kSections = {{
    {SectionId::kCompressed, "compressed", kSectionRequired},
    {SectionId::kMetadata, "metadata", 0},
    {SectionId::kDevices, "devices", kSectionRequired},
    {SectionId::kSymbols, "symbols", kSectionRequired},
    {SectionId::kSymbolLimits, "symbol limits", 0},
    {SectionId::kStrings, "strings", kSectionRequired},
    {SectionId::kConstants, "constants", kSectionRequired},
    {SectionId::kKernels, "kernels", kSectionRequired},
    {SectionId::kDeviceCode, "device code", kSectionRequired},
    {SectionId::kFunctions, "functions", kSectionRequired},
    {SectionId::kCode, "code", kSectionRequired},
    {SectionId::kNotes, "notes", 0},
    {SectionId::kModels, "models", kSectionRequired},
    {SectionId::kBlobs, "blobs", kSectionRequired},
    {SectionId::kData, "data", kSectionRequired | kSectionOwnChecksums},
}};

// Null if this version has no such section.
constexpr const SectionInfo* FindSection(std::uint32_t id) {
  for (const SectionInfo& section : kSections) {
    if (static_cast<std::uint32_t>(section.id) == id) return &section;
  }
  return nullptr;
}

}  // namespace rewire

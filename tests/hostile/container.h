// SPDX-License-Identifier: Apache-2.0
// The container of an executable as docs/format.md, "Container", describes it: a list of sections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/tests/hostile/bytes.h"

namespace rewire::hostile {

// The ids of docs/format.md.
enum SectionId : std::uint32_t {
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
  kModels = 11,
  kBlobs = 12,
  kSymbolLimits = 13,
  kDeviceCode = 14,
  kCompressed = 15,
};

// In a sound file's order.
const std::vector<std::uint32_t>& SectionOrder();
// The flags that docs/format.md gives for an id; 0 for one that it does not have.
std::uint32_t FlagsOf(std::uint32_t id);

struct Section {
  std::uint32_t id = 0;
  std::uint32_t flags = 0;
  Bytes bytes;
  // Lies about the section, for damaged files.
  std::int64_t move = 0;                  // added to its offset
  std::optional<std::uint64_t> size;      // in place of bytes.size()
  std::optional<std::uint64_t> checksum;  // in place of the right one
  bool at_previous = false;               // begins where the one before begins
};

struct Container {
  std::uint16_t major = 1;
  std::uint16_t minor = 0;
  std::vector<Section> sections;
  // Lies about the whole.
  std::optional<std::uint32_t> section_count;
  std::optional<std::uint64_t> file_size;
  Bytes tail;  // behind the last section
};

// Nothing where the bytes are no container that docs/format.md allows, checksums included.
std::optional<Container> ParseContainer(std::string_view file);
// With right checksums of all that the container does not lie about.
Bytes WriteContainer(const Container& container);

// The container with the sections that section `compressed` holds in its place. Nothing where docs/format.md
// does not allow it.
std::optional<Container> Decompressed(Container container);
// All sections but `data` in section `compressed`. In a build without zstd, the container as it is.
Container Compressed(const Container& container);

std::uint64_t Checksum(std::string_view bytes);

}  // namespace rewire::hostile

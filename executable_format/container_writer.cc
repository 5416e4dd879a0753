// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/container_writer.h"

#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/hash.h"

namespace rewire::container {
namespace {

Status TooLarge() {
  return Fail(StatusCode::kInvalidArgument, "the file would be larger than its 64-bit sizes can say");
}

Result<std::uint64_t> DataSize(Span<const Span<const std::byte>> items) {
  std::uint64_t size = 0;
  for (const Span<const std::byte> item : items) {
    const std::optional<std::uint64_t> start = CheckedAlignUp(size, kDataAlignment);
    std::optional<std::uint64_t> end;
    if (start) end = CheckedAdd<std::uint64_t>(*start, item.size());
    if (!end) return TooLarge();
    size = *end;
  }
  return size;
}

std::vector<std::byte> Directory(const Array<Section>& sections) {
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
Status Place(Array<Section>& sections, std::uint64_t data_size) {
  std::uint64_t position = sizeof(FileHeader) + sections.size() * sizeof(SectionEntry) + 8;
  for (Section& section : sections) {
    const bool is_data = section.info->id == SectionId::kData;
    std::optional<std::uint64_t> offset = CheckedAlignUp(position, kSectionAlignment);
    const std::uint64_t size = is_data ? data_size : section.bytes.size();
    std::optional<std::uint64_t> end;
    if (offset) end = CheckedAdd(*offset, size);
    if (!end) return TooLarge();
    section.entry = {static_cast<std::uint32_t>(section.info->id), section.info->flags, *offset, size,
                     is_data ? 0 : Hash64(section.bytes)};
    position = *end;
  }
  return {};
}

}  // namespace

Status WriteSections(Array<Section> sections, Span<const Span<const std::byte>> items, Sink* sink) {
  const Result<std::uint64_t> data_size = DataSize(items);
  if (!data_size) return Forward(data_size);
  if (!items.empty()) {
    const SectionInfo* info = FindSection(static_cast<std::uint32_t>(SectionId::kData));
    sections.push_back({info, {}, {}});
  }
  if (Status placed = Place(sections, *data_size); !placed) return placed;

  std::uint64_t position = 0;
  const auto put = [&](Span<const std::byte> bytes) -> Status {
    position += bytes.size();
    return sink->Write(bytes);
  };
  const auto pad_to = [&](std::uint64_t offset) -> Status {
    static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
    return put(Span<const std::byte>(kZeros.data(), static_cast<std::size_t>(offset - position)));
  };
  if (Status status = put(Directory(sections)); !status) return status;
  for (const Section& section : sections) {
    if (Status status = pad_to(section.entry.offset); !status) return status;
    if (Status status = put(section.bytes); !status) return status;
  }
  for (const Span<const std::byte> item : items) {
    if (Status status = pad_to(*CheckedAlignUp(position, kDataAlignment)); !status) return status;
    if (Status status = put(item); !status) return status;
  }
  return {};
}

}  // namespace rewire::container

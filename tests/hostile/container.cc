// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/container.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace rewire::hostile {
namespace {

constexpr std::string_view kMagic("\x89RWX\r\n\x1A\n", 8);
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kEntryBytes = 32;
constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kOwnChecksums = 2;
constexpr std::uint32_t kMostSections = 64;

struct Entry {
  std::uint32_t id = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;
};

std::size_t Aligned(std::size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

const std::vector<std::uint32_t>& SectionOrder() {
  static const std::vector<std::uint32_t> kOrder = {
      kMetadata,   kDevices,   kSymbols, kSymbolLimits, kStrings, kConstants, kKernels,
      kDeviceCode, kFunctions, kCode,    kNotes,        kModels,  kBlobs,     kData};
  return kOrder;
}

std::uint32_t FlagsOf(std::uint32_t id) {
  switch (id) {
    case kMetadata:
    case kNotes:
    case kSymbolLimits:
      return 0;
    case kData:
      return 3;
    default:
      return (id >= kDevices && id <= kBlobs) || id == kDeviceCode || id == kCompressed ? 1 : 0;
  }
}

std::uint64_t Checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::optional<Container> ParseContainer(std::string_view file) {
  ByteReader reader(file);
  Container container;
  if (reader.Raw(kMagic.size()) != kMagic) return std::nullopt;
  container.major = reader.Number<std::uint16_t>();
  container.minor = reader.Number<std::uint16_t>();
  const auto count = reader.Number<std::uint32_t>();
  if (reader.Number<std::uint64_t>() != file.size() || count > kMostSections) return std::nullopt;
  std::vector<Entry> entries(count);
  for (Entry& entry : entries) {
    entry.id = reader.Number<std::uint32_t>();
    entry.flags = reader.Number<std::uint32_t>();
    entry.offset = reader.Number<std::uint64_t>();
    entry.size = reader.Number<std::uint64_t>();
    entry.checksum = reader.Number<std::uint64_t>();
  }
  const std::size_t directory = kHeaderBytes + count * kEntryBytes;
  const auto checksum = reader.Number<std::uint64_t>();
  if (!reader.ok() || checksum != Checksum(file.substr(0, directory))) return std::nullopt;
  std::size_t end = directory + sizeof(checksum);
  for (const Entry& entry : entries) {
    if (entry.offset != Aligned(end) || entry.offset > file.size() || entry.size > file.size() - entry.offset)
      return std::nullopt;
    const std::string_view padding = file.substr(end, entry.offset - end);
    if (padding.find_first_not_of('\0') != std::string_view::npos) return std::nullopt;
    Section section;
    section.id = entry.id;
    section.flags = entry.flags;
    section.bytes = file.substr(entry.offset, entry.size);
    const bool own = (entry.flags & kOwnChecksums) != 0;
    if (entry.checksum != (own ? 0 : Checksum(section.bytes))) return std::nullopt;
    container.sections.push_back(std::move(section));
    end = entry.offset + entry.size;
  }
  if (end != file.size()) return std::nullopt;
  return container;
}

Bytes WriteContainer(const Container& container) {
  const std::size_t directory = kHeaderBytes + container.sections.size() * kEntryBytes;
  std::vector<Entry> entries;
  Bytes body;  // from the directory's end
  const std::size_t start = directory + sizeof(std::uint64_t);
  std::size_t previous = start;
  for (const Section& section : container.sections) {
    std::size_t offset = Aligned(start + body.size());
    if (section.at_previous) {
      offset = previous;
    } else {
      body.append(offset - start - body.size(), '\0');
      body += section.bytes;
    }
    previous = offset;
    Entry entry;
    entry.id = section.id;
    entry.flags = section.flags;
    entry.offset = offset + static_cast<std::uint64_t>(section.move);
    entry.size = section.size.value_or(section.bytes.size());
    // The checksum is that of the bytes that the reader will find there.
    std::string_view found = section.bytes;
    const std::string_view all = body;
    if (entry.offset >= start && entry.offset - start <= all.size())
      found = all.substr(entry.offset - start, entry.size);
    const bool own = (section.flags & kOwnChecksums) != 0;
    entry.checksum = section.checksum.value_or(own ? 0 : Checksum(found));
    entries.push_back(entry);
  }
  body += container.tail;
  ByteWriter writer;
  writer.Raw(kMagic);
  writer.Number(container.major);
  writer.Number(container.minor);
  writer.Number(container.section_count.value_or(static_cast<std::uint32_t>(entries.size())));
  writer.Number(container.file_size.value_or(start + body.size()));
  for (const Entry& entry : entries) {
    writer.Number(entry.id);
    writer.Number(entry.flags);
    writer.Number(entry.offset);
    writer.Number(entry.size);
    writer.Number(entry.checksum);
  }
  writer.Number(Checksum(writer.bytes()));
  writer.Raw(body);
  return writer.bytes();
}

}  // namespace rewire::hostile

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/mutation_drill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/base/hash.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/sections.h"
#include "rewire/executable_format/verifier.h"

namespace rewire::test {
namespace {

using Bytes = std::vector<std::byte>;

// Low and high bit find other rules than a whole byte.
constexpr unsigned kFlips[] = {0x01, 0x80, 0xFF};

template <typename T>
T Load(const Bytes& file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}
template <typename T>
void Store(Bytes& file, std::size_t offset, const T& value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

std::vector<SectionEntry> Entries(const Bytes& file) {
  std::vector<SectionEntry> entries;
  if (file.size() < sizeof(FileHeader)) return entries;
  const std::size_t room = (file.size() - sizeof(FileHeader)) / sizeof(SectionEntry);
  const std::size_t count = std::min<std::size_t>(Load<FileHeader>(file, 0).section_count, room);
  for (std::size_t i = 0; i < count; ++i) {
    entries.push_back(Load<SectionEntry>(file, sizeof(FileHeader) + i * sizeof(SectionEntry)));
  }
  return entries;
}

bool IsInside(const Bytes& file, const SectionEntry& entry) {
  return entry.offset <= file.size() && entry.size <= file.size() - entry.offset;
}

// The records of the constants with right checksums have the same size, so they are written over the old
// ones.
void RecomputeConstants(Bytes& file, const SectionEntry& records, const SectionEntry& data) {
  ArchiveReader reader({file.data() + records.offset, records.size});
  Array<Constant> constants;
  Array<std::uint64_t> sizes;
  sections::Constants(reader, constants, sizes);
  if (!reader.ok()) return;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (sizes[i] == 0) continue;
    const std::uint64_t start = (end + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
    if (start > data.size || sizes[i] > data.size - start) return;
    constants[i].checksum = Hash64({file.data() + data.offset + start, sizes[i]});
    end = start + sizes[i];
  }
  ArchiveWriter writer;
  sections::Constants(writer, constants, sizes);
  const std::size_t same = std::min<std::size_t>(writer.bytes().size(), records.size);
  std::memcpy(file.data() + records.offset, writer.bytes().data(), same);
}

// The files inside a bundle's models section.
void RecomputeModels(Bytes& file, const SectionEntry& section) {
  Array<sections::ModelRecord> models;
  ArchiveReader reader({file.data() + section.offset, section.size});
  sections::Models(reader, models);
  if (!reader.ok()) return;
  for (sections::ModelRecord& model : models) {
    const auto* bytes = reinterpret_cast<const std::byte*>(model.file.data());
    Bytes inner(bytes, bytes + model.file.size());
    RecomputeChecksums(inner);
    model.file.assign(reinterpret_cast<const char*>(inner.data()), inner.size());
  }
  ArchiveWriter writer;
  sections::Models(writer, models);
  const std::size_t same = std::min<std::size_t>(writer.bytes().size(), section.size);
  std::memcpy(file.data() + section.offset, writer.bytes().data(), same);
}

void Count(const Bytes& mutated, std::string what, bool recomputed, DrillCounts& counts,
           const std::function<void(const Mutant&)>& on_accepted) {
  ++counts.mutants;
  // On the heap in exactly its size, so that a sanitizer sees the first byte too far.
  auto owner = std::make_shared<Bytes>(mutated);
  owner->shrink_to_fit();
  const SharedBytes shared{{owner->data(), owner->size()}, owner};
  OpenOptions options;
  options.verify_data = true;
  if (!ReadModule(shared, options)) return;
  ++counts.past_reader;
  Result<Executable> executable = Executable::FromBytes(shared, options);
  if (!executable) return;
  ++counts.past_verifier;
  if (on_accepted) on_accepted({std::move(what), recomputed, *std::move(executable)});
}

}  // namespace

DrillCounts& DrillCounts::operator+=(const DrillCounts& other) {
  mutants += other.mutants;
  past_reader += other.past_reader;
  past_verifier += other.past_verifier;
  return *this;
}

std::string DrillCounts::Text() const {
  const double percent = mutants == 0 ? 0 : 100.0 / static_cast<double>(mutants);
  return fmt::format("{} mutants, {:.1f} % past the reader, {:.1f} % past the verifier", mutants,
                     static_cast<double>(past_reader) * percent,
                     static_cast<double>(past_verifier) * percent);
}

void RecomputeChecksums(Bytes& file) {
  if (file.size() < sizeof(FileHeader)) return;
  auto header = Load<FileHeader>(file, 0);
  header.file_size = file.size();
  Store(file, 0, header);

  std::vector<SectionEntry> entries = Entries(file);
  const auto find = [&](SectionId id) -> SectionEntry* {
    for (SectionEntry& entry : entries) {
      if (entry.id == static_cast<std::uint32_t>(id) && IsInside(file, entry)) return &entry;
    }
    return nullptr;
  };
  // A cut file keeps what is left of its last section.
  if (!entries.empty() && entries.back().offset <= file.size()) {
    entries.back().size = std::min(entries.back().size, file.size() - entries.back().offset);
  }
  SectionEntry* records = find(SectionId::kConstants);
  SectionEntry* data = find(SectionId::kData);
  if (records != nullptr && data != nullptr) RecomputeConstants(file, *records, *data);
  if (const SectionEntry* models = find(SectionId::kModels)) RecomputeModels(file, *models);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    SectionEntry& entry = entries[i];
    if (IsInside(file, entry) && (entry.flags & kSectionOwnChecksums) == 0) {
      entry.checksum = Hash64({file.data() + entry.offset, entry.size});
    }
    Store(file, sizeof(FileHeader) + i * sizeof(SectionEntry), entry);
  }
  const std::size_t directory = sizeof(FileHeader) + entries.size() * sizeof(SectionEntry);
  if (directory + 8 <= file.size()) Store(file, directory, Hash64({file.data(), directory}));
}

DrillReport RunMutationDrill(Span<const std::byte> file,
                             const std::function<void(const Mutant&)>& on_accepted) {
  DrillReport report;
  const auto both = [&](Bytes mutated, const std::string& what) {
    Count(mutated, what, false, report.plain, on_accepted);
    RecomputeChecksums(mutated);
    Count(mutated, what + ", checksums recomputed", true, report.recomputed, on_accepted);
  };
  for (std::size_t size = 0; size < file.size(); ++size) {
    both(Bytes(file.begin(), file.begin() + size), fmt::format("cut to {} bytes", size));
  }
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (unsigned flip : kFlips) {
      Bytes mutated(file.begin(), file.end());
      mutated[i] ^= static_cast<std::byte>(flip);
      both(std::move(mutated), fmt::format("byte {} ^ {:#04x}", i, flip));
    }
  }
  return report;
}

}  // namespace rewire::test

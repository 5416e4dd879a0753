// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/writer.h"

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

#include <cstring>
#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/hash.h"
#include "rewire/executable_format/container_writer.h"
#include "rewire/executable_format/sections.h"

namespace rewire {
namespace {

#ifndef REWIRE_NO_ZSTD
// Nearly the smallest result. Tables of 100 KB take 30 ms.
constexpr int kCompressionLevel = 19;
#endif

Status FillChecksums(Array<Constant>& constants) {
  for (std::size_t i = 0; i < constants.size(); ++i) {
    Constant& constant = constants[i];
    const std::uint64_t checksum = Hash64(constant.stored.view);
    if (constant.checksum != 0 && constant.checksum != checksum) {
      return Fail(StatusCode::kInvalidFile,
                  "constant {} ('{}') is damaged: its bytes have checksum {}, its record says {}", i,
                  constant.name, HashText(checksum), HashText(constant.checksum));
    }
    constant.checksum = checksum;
  }
  return {};
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
    case SectionId::kSymbolLimits:
      return module.symbol_limits.empty();
    case SectionId::kStrings:
      return module.strings.empty();
    case SectionId::kConstants:
      return module.constants.empty();
    case SectionId::kKernels:
      return module.kernels.empty();
    case SectionId::kDeviceCode:
      return module.device_code.empty() && module.device_kernels.empty();
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
    case SectionId::kModels:
    case SectionId::kBlobs:
    case SectionId::kCompressed:
    case SectionId::kData:
      return true;  // not of a module, or written apart
  }
  return true;
}

void Encode(SectionId id, const Module& module, const Array<Constant>& constants, ArchiveWriter& archive) {
  switch (id) {
    case SectionId::kMetadata:
      return sections::Metadata(archive, module);
    case SectionId::kDevices:
      return sections::Devices(archive, module);
    case SectionId::kSymbols:
      return sections::Texts(archive, module.symbols);
    case SectionId::kSymbolLimits:
      return sections::SymbolLimits(archive, module);
    case SectionId::kStrings:
      return sections::Texts(archive, module.strings);
    case SectionId::kConstants: {
      Array<std::uint64_t> sizes;
      sizes.reserve(constants.size());
      for (const Constant& constant : constants) sizes.push_back(constant.stored.view.size());
      return sections::Constants(archive, constants, sizes);
    }
    case SectionId::kKernels:
      return sections::Kernels(archive, module);
    case SectionId::kDeviceCode:
      return sections::DeviceCode(archive, module);
    case SectionId::kFunctions: {
      Array<std::uint32_t> words;
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
    case SectionId::kModels:
    case SectionId::kBlobs:
    case SectionId::kCompressed:
    case SectionId::kData:
      return;
  }
}

// Puts all sections into section `compressed`, if readers take it and the file gets at least 1/64 smaller.
// Otherwise they stay as they are, for readers without zstd.
Status Compress(Array<container::Section>* sections, std::uint64_t data_bytes) {
#ifdef REWIRE_NO_ZSTD
  (void)sections;
  (void)data_bytes;
#else
  container::MemorySink sink;
  if (Status written = container::WriteSections(*sections, {}, &sink); !written) return written;
  const std::vector<std::byte> content = sink.Take();
  const std::uint64_t size = content.size();
  const std::uint64_t least_gain = (size + data_bytes) / 64;
  if (size < least_gain) return {};
  std::vector<std::byte> section(sizeof(size) + ZSTD_compressBound(size));
  std::memcpy(section.data(), &size, sizeof(size));
  const std::size_t frame = ZSTD_compress(section.data() + sizeof(size), section.size() - sizeof(size),
                                          content.data(), size, kCompressionLevel);
  if (ZSTD_isError(frame) != 0) return {};  // it lacks memory
  section.resize(sizeof(size) + frame);
  if (section.size() + least_gain > size || size > MostDecompressedBytes(frame)) return {};
  const SectionInfo* info = FindSection(static_cast<std::uint32_t>(SectionId::kCompressed));
  *sections = {{info, std::move(section), {}}};
#endif
  return {};
}

// Passes the whole file on, piece by piece, so that constants are not copied first.
Status Emit(const Module& module, bool with_data, container::Sink* sink) {
  Array<Constant> constants = module.constants;
  if (Status filled = FillChecksums(constants); !filled) return filled;
  Array<container::Section> sections;
  for (const SectionInfo& info : kSections) {
    if (info.id == SectionId::kData || IsAbsent(info.id, module)) continue;
    ArchiveWriter archive;
    Encode(info.id, module, constants, archive);
    if (!archive.ok()) {
      return Fail(StatusCode::kInvalidArgument,
                  "section '{}' has a string or list of more than 2^32 - 1 elements", info.name);
    }
    sections.push_back({&info, std::move(archive.bytes()), {}});
  }
  Array<Span<const std::byte>> data;
  std::uint64_t data_bytes = 0;
  for (const Constant& constant : constants) {
    if (!with_data || constant.stored.view.empty()) continue;
    data.push_back(constant.stored.view);
    data_bytes += constant.stored.view.size();
  }
  // The models of a bundle are not compressed: what reading one may cost depends on its size.
  if (module.compressed && with_data) {
    if (Status compressed = Compress(&sections, data_bytes); !compressed) return compressed;
  }
  return container::WriteSections(std::move(sections), data, sink);
}

Result<std::vector<std::byte>> Serialize(const Module& module, bool with_data) {
  container::MemorySink sink;
  if (Status emitted = Emit(module, with_data, &sink); !emitted) return Forward(emitted);
  return sink.Take();
}

}  // namespace

Result<std::vector<std::byte>> SerializeModule(const Module& module) { return Serialize(module, true); }

Result<std::vector<std::byte>> SerializeWithoutData(const Module& module) { return Serialize(module, false); }

Status WriteModule(const Module& module, const std::string& path, unsigned mode) {
  Result<AtomicFile> file = AtomicFile::Create(path, mode);
  if (!file) return Forward(file);
  container::FileSink sink(&*file);
  if (Status emitted = Emit(module, true, &sink); !emitted) return emitted;
  return file->Commit();
}

}  // namespace rewire

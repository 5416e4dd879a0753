// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/reader.h"

#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/hash.h"
#include "rewire/executable_format/container.h"
#include "rewire/executable_format/sections.h"
#include "rewire/executable_format/zstd_frames.h"

namespace rewire {
namespace {

using container::Damaged;
using container::FoundSection;

// The statements of sections about each other, until all are read.
struct Pieces {
  Array<std::uint64_t> stored_sizes;  // of the constants
  Array<std::uint32_t> code_words;    // of the functions
  std::uint64_t decompressed_size = 0;
  Span<const std::byte> frames;
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
    case SectionId::kSymbolLimits:
      return sections::SymbolLimits(archive, module);
    case SectionId::kStrings:
      return sections::Texts(archive, module.strings);
    case SectionId::kConstants:
      return sections::Constants(archive, module.constants, pieces.stored_sizes);
    case SectionId::kKernels:
      return sections::Kernels(archive, module);
    case SectionId::kDeviceCode:
      return sections::DeviceCode(archive, module);
    case SectionId::kFunctions:
      return sections::Functions(archive, module, pieces.code_words);
    case SectionId::kCode:
      pieces.code = archive.ReadBytes(archive.remaining());
      return;
    case SectionId::kNotes:
      return sections::Notes(archive, module);
    case SectionId::kCompressed:
      archive.Number(pieces.decompressed_size);
      pieces.frames = archive.ReadBytes(archive.remaining());
      // 0 is the largest number then.
      if (pieces.decompressed_size - 1 >= MostDecompressedBytes(pieces.frames.size()))
        archive.Reject("its content has no bytes, or too many for its size");
      return;
    case SectionId::kModels:
    case SectionId::kBlobs:
      return archive.Reject("this is a bundle of several models; choose one (OpenBundle, vm-run --model)");
    case SectionId::kData:
      pieces.data = archive.ReadBytes(archive.remaining());
      return;
  }
}

Status SplitCode(Module& module, const Pieces& pieces) {
  std::uint64_t total = 0;
  for (std::uint32_t words : pieces.code_words) total += words;
  if (total != pieces.code.size() / 4 || pieces.code.size() % 4 != 0) {
    return Damaged("the functions have {} words of code, section 'code' has {} bytes", total,
                   pieces.code.size());
  }
  const std::byte* position = pieces.code.data();
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    Array<std::uint32_t>& code = module.functions[i].code;
    if (pieces.code_words[i] == 0) continue;
    code.resize(pieces.code_words[i]);
    std::memcpy(code.data(), position, code.size() * 4);
    position += code.size() * 4;
  }
  return {};
}

// Adds the sections inside section `compressed` to the others. Their bytes lie in `content`.
Status Decompress(const Pieces& pieces, Array<std::byte>* content, Array<FoundSection>* found) {
  const Message what = "section 'compressed'";
  content->resize(pieces.decompressed_size);
  if (Status decoded = DecodeZstd(pieces.frames, what, *content); !decoded) return decoded;
  const std::size_t outside = found->size();
  if (Status read = container::ReadSections(*content, found); !read) return Forward(read, what);
  for (std::size_t i = outside; i < found->size(); ++i) {
    if ((*found)[i].entry.id == static_cast<std::uint32_t>(SectionId::kData))
      return Damaged("section 'data' is inside section 'compressed'");
  }
  return {};
}

// Gives every constant its bytes: from the file's own section, or in their order from a bundle's.
Status PlaceData(Module& module, const Pieces& pieces, const ModelBlobs* blobs, const SharedBytes& file,
                 bool verify) {
  Array<Span<const std::byte>> own;
  if (blobs == nullptr) {
    auto split = container::SplitData(pieces.data, pieces.stored_sizes, &module.constants, verify);
    if (!split) return Forward(split);
    own = *std::move(split);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    Constant& constant = module.constants[i];
    std::uint64_t checksum = constant.checksum;
    if (pieces.stored_sizes[i] == 0) {
      if (verify) checksum = Hash64({});
    } else if (blobs == nullptr) {
      constant.stored = {own[i], file.owner, file.mapped};
      if (verify) checksum = Hash64(own[i]);
    } else {
      const std::uint32_t blob = next == blobs->indices.size() ? kNone : blobs->indices[next++];
      if (blob >= blobs->blobs.size() || blobs->blobs[blob].view.size() != pieces.stored_sizes[i]) {
        return Damaged("constant {} ('{}') has {} bytes, the bundle has no blob of that size for it", i,
                       constant.name, pieces.stored_sizes[i]);
      }
      constant.stored = blobs->blobs[blob];
      if (verify) checksum = blobs->checksums[blob];
    }
    if (checksum != constant.checksum) {
      return Damaged("constant {} ('{}') is damaged: its bytes have checksum {}, its record says {}", i,
                     constant.name, HashText(checksum), HashText(constant.checksum));
    }
  }
  if (blobs == nullptr || (next == blobs->indices.size() && pieces.data.empty())) return {};
  return Damaged("a model of the bundle names more blobs than it has constants");
}

}  // namespace

Result<Module> ReadModule(const SharedBytes& bytes, const OpenOptions& options) {
  Module module;
  if (Status read = ReadModuleInto(bytes, nullptr, options, &module); !read) return read;
  return module;
}

Status ReadModuleInto(const SharedBytes& bytes, const ModelBlobs* blobs, const OpenOptions& options,
                      Module* module) {
  Array<FoundSection> found;
  if (Status read = container::ReadSections(bytes.view, &found); !read) return read;

  module->devices.clear();
  Pieces pieces;
  Array<std::byte> content;
  // In the order of the table, not of the file: a section may lean on those before it.
  for (const SectionInfo& info : kSections) {
    for (const FoundSection& section : found) {
      if (section.info != &info) continue;
      ArchiveReader archive(section.bytes);
      Decode(info.id, archive, *module, pieces);
      if (archive.ok() && archive.remaining() != 0) archive.Reject("bytes follow its last record");
      if (!archive.ok()) {
        return Damaged("section '{}' at offset {} is malformed at its byte {} of {}: {}", info.name,
                       section.entry.offset, archive.position(), section.bytes.size(), archive.reason());
      }
    }
    if (info.id != SectionId::kCompressed || pieces.decompressed_size == 0) continue;
    module->compressed = true;
    if (Status read = Decompress(pieces, &content, &found); !read) return read;
  }
  if (Status split = SplitCode(*module, pieces); !split) return split;
  return PlaceData(*module, pieces, blobs, bytes, options.verify_data);
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include "executable_format/bundle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/array.h"
#include "base/mapped_file.h"
#include "base/near_names.h"
#include "base/utf8.h"
#include "executable_format/container.h"
#include "executable_format/reader.h"
#include "executable_format/sections.h"
#include "executable_format/verifier.h"

namespace rewire {
namespace {

using container::Damaged;
using sections::ModelRecord;

struct Pieces {
  Array<ModelRecord> models;
  Array<std::uint64_t> sizes;
  Span<const std::byte> data;
};

Status Decode(const container::FoundSection& section, Pieces* pieces) {
  if (section.info == nullptr) return {};
  ArchiveReader archive(section.bytes);
  switch (section.info->id) {
    case SectionId::kModels:
      sections::Models(archive, pieces->models);
      break;
    case SectionId::kBlobs:
      sections::Blobs(archive, pieces->sizes);
      break;
    case SectionId::kData:
      pieces->data = archive.ReadBytes(archive.remaining());
      break;
    case SectionId::kMetadata:
    case SectionId::kDevices:
    case SectionId::kSymbols:
    case SectionId::kSymbolLimits:
    case SectionId::kStrings:
    case SectionId::kConstants:
    case SectionId::kKernels:
    case SectionId::kFunctions:
    case SectionId::kCode:
    case SectionId::kNotes:
      return Damaged("this is no bundle: it has section '{}'", section.info->name);
  }
  if (archive.ok() && archive.remaining() != 0) archive.Reject("bytes follow its last record");
  if (archive.ok()) return {};
  return Damaged("section '{}' at offset {} is malformed at its byte {} of {}: {}", section.info->name,
                 section.entry.offset, archive.position(), section.bytes.size(), archive.reason());
}

Result<Executable> OpenModel(const ModelRecord& model, const Array<SharedBytes>& blobs,
                             const OpenOptions& options) {
  Array<SharedBytes> own;
  for (const std::uint32_t blob : model.blobs) {
    if (blob >= blobs.size()) {
      return Damaged("it names blob {}, there are {}", blob, blobs.size());
    }
    own.push_back(blobs[blob]);
  }
  const SharedBytes file{{reinterpret_cast<const std::byte*>(model.file.data()), model.file.size()}, nullptr};
  Module module;
  if (Status read = ReadModuleInto(file, &own, options, &module); !read) return read;
  return Executable::FromModule(std::move(module), options.limits);
}

}  // namespace

Status CheckModelNames(Span<const std::string> names) {
  if (names.empty()) return Fail(StatusCode::kInvalidArgument, "a bundle has at least one executable");
  Array<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().empty())
    return Fail(StatusCode::kInvalidArgument, "an executable of a bundle has a name");
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!IsUtf8(sorted[i])) return Fail(StatusCode::kInvalidArgument, "the name of a model is not UTF-8");
    if (i == 0 || sorted[i] != sorted[i - 1]) continue;
    return Fail(StatusCode::kInvalidArgument, "two models are called '{}'", sorted[i]);
  }
  return {};
}

Result<Array<BundledExecutable>> OpenBundle(const std::string& path, const OpenOptions& options) {
  const Result<SharedBytes> bytes = options.copy ? ReadFile(path) : MapFile(path);
  if (!bytes) return Forward(bytes);
  Result<Array<BundledExecutable>> bundle = BundleFromBytes(*bytes, options);
  if (!bundle) return Forward(bundle, path);
  return bundle;
}

Result<Array<BundledExecutable>> BundleFromBytes(const SharedBytes& bytes, const OpenOptions& options) {
  const Result<Array<container::FoundSection>> found = container::ReadSections(bytes.view);
  if (!found) return Forward(found);
  Pieces pieces;
  for (const container::FoundSection& section : *found) {
    if (Status decoded = Decode(section, &pieces); !decoded) return Forward(decoded);
  }
  Array<std::string> names;
  for (const ModelRecord& model : pieces.models) names.push_back(model.name);
  if (Status valid = CheckModelNames(names); !valid) return Damaged("{}", valid.error().message());
  const auto items = container::SplitData(pieces.data, pieces.sizes, nullptr, options.verify_data);
  if (!items) return Forward(items);
  Array<SharedBytes> blobs;
  for (const Span<const std::byte> item : *items) blobs.push_back({item, bytes.owner, bytes.mapped});

  Array<BundledExecutable> bundle;
  for (const ModelRecord& model : pieces.models) {
    Result<Executable> executable = OpenModel(model, blobs, options);
    if (!executable) return Forward(executable, {"model '{}'", model.name});
    bundle.push_back({model.name, *std::move(executable)});
  }
  return bundle;
}

bool IsBundle(Span<const std::byte> bytes) {
  SectionEntry first{};
  if (bytes.size() < sizeof(FileHeader) + sizeof(first)) return false;
  std::memcpy(&first, bytes.data() + sizeof(FileHeader), sizeof(first));
  return std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0 &&
         first.id == static_cast<std::uint32_t>(SectionId::kModels);
}

Result<Executable> FindExecutable(Span<const BundledExecutable> bundle, const std::string& name) {
  if (name.empty() && bundle.size() == 1) return bundle[0].executable;
  Array<std::string> names;
  std::string all;
  for (const BundledExecutable& model : bundle) {
    if (model.name == name) return model.executable;
    names.push_back(model.name);
    all += (all.empty() ? "" : ", ") + model.name;
  }
  if (name.empty()) return Fail(StatusCode::kNotFound, "the bundle has several models, name one: " + all);
  return Fail(StatusCode::kNotFound, "the bundle has no model '{}'{}; it has {}", name,
              DidYouMean(name, names), all);
}

}  // namespace rewire

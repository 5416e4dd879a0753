// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/bundle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/near_names.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/bundle_reader.h"
#include "rewire/executable_format/container.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/sections.h"
#include "rewire/executable_format/verifier.h"

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
    case SectionId::kDeviceCode:
    case SectionId::kFunctions:
    case SectionId::kCode:
    case SectionId::kNotes:
    case SectionId::kCompressed:
      return Damaged("this is no bundle: it has section '{}'", section.info->name);
  }
  if (archive.ok() && archive.remaining() != 0) archive.Reject("bytes follow its last record");
  if (archive.ok()) return {};
  return Damaged("section '{}' at offset {} is malformed at its byte {} of {}: {}", section.info->name,
                 section.entry.offset, archive.position(), section.bytes.size(), archive.reason());
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
    return Fail(StatusCode::kInvalidArgument, "two models are called '{}'; give each a name of its own",
                sorted[i]);
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

namespace {

// Opens the models of one bundle. What several of them share is checked once, and one meter counts for all,
// because a bundle may have many small models.
class BundledModels {
 public:
  BundledModels(const SharedBytes& file, const OpenOptions& options) : file_(file), options_(options) {}

  Result<Array<BundledExecutable>> Read() {
    Array<container::FoundSection> found;
    if (Status read = container::ReadSections(file_.view, &found); !read) return Forward(read);
    for (const container::FoundSection& section : found) {
      if (Status decoded = Decode(section, &pieces_); !decoded) return Forward(decoded);
    }
    Array<std::string> names;
    std::uint64_t size = 0;
    for (const ModelRecord& model : pieces_.models) {
      names.push_back(model.name);
      size += model.file.size();
    }
    if (Status valid = CheckModelNames(names); !valid) return Damaged("{}", valid.error().message());
    if (Status placed = PlaceBlobs(); !placed) return Forward(placed);

    WorkMeter meter(VerifierBudget(size, options_.limits));
    Array<BundledExecutable> bundle;
    for (const ModelRecord& model : pieces_.models) {
      Result<Executable> executable = Open(model, &meter);
      if (!executable) return Forward(executable, {"model '{}'", model.name});
      bundle.push_back({model.name, *std::move(executable)});
    }
    return bundle;
  }

 private:
  Status PlaceBlobs() {
    const auto items = container::SplitData(pieces_.data, pieces_.sizes, nullptr, options_.verify_data);
    if (!items) return Forward(items);
    for (const Span<const std::byte> item : *items) {
      blobs_.push_back({item, file_.owner, file_.mapped});
      if (options_.verify_data) checksums_.push_back(Hash64(item));
    }
    return {};
  }

  Result<Executable> Open(const ModelRecord& model, WorkMeter* meter) {
    for (const std::uint32_t blob : model.blobs) {
      if (blob >= blobs_.size()) return Damaged("it names blob {}, there are {}", blob, blobs_.size());
    }
    const SharedBytes file{{reinterpret_cast<const std::byte*>(model.file.data()), model.file.size()},
                           nullptr};
    const ModelBlobs blobs{model.blobs, blobs_, checksums_};
    auto module = std::make_shared<Module>();
    if (Status read = ReadModuleInto(file, &blobs, options_, module.get()); !read) return read;
    if (Status verified = VerifyModule(*module, options_.limits, meter); !verified) return verified;
    return BundleReader::Accept(std::move(module));
  }

  const SharedBytes& file_;
  const OpenOptions& options_;
  Pieces pieces_;
  Array<SharedBytes> blobs_;
  Array<std::uint64_t> checksums_;
};

}  // namespace

Result<Array<BundledExecutable>> BundleFromBytes(const SharedBytes& bytes, const OpenOptions& options) {
  return BundledModels(bytes, options).Read();
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
  for (const BundledExecutable& model : bundle) {
    if (model.name == name) return model.executable;
    names.push_back(model.name);
  }
  const std::string known = KnownNames("models", name, names);
  if (name.empty()) return Fail(StatusCode::kNotFound, "the bundle has several models, name one{}", known);
  return Fail(StatusCode::kNotFound, "the bundle has no model '{}'{}", name, known);
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/hash.h"
#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/container_writer.h"
#include "rewire/executable_format/sections.h"
#include "rewire/executable_format/writer.h"

namespace rewire {
namespace {

Status Emit(Span<const BundledExecutable> models, container::Sink* sink) {
  Array<std::string> names;
  for (const BundledExecutable& model : models) names.push_back(model.name);
  if (Status valid = CheckModelNames(names); !valid) return valid;
  Array<sections::ModelRecord> records;
  Array<std::uint64_t> sizes;
  Array<Span<const std::byte>> items;
  Array<std::pair<std::uint64_t, std::uint32_t>> known;  // hash and blob, sorted
  for (const BundledExecutable& model : models) {
    sections::ModelRecord record{model.name, {}, {}};
    for (const Constant& constant : model.executable.module().constants) {
      const Span<const std::byte> bytes = constant.stored.view;
      if (bytes.empty()) continue;
      const std::uint64_t hash = Hash64(bytes);
      auto at = std::lower_bound(known.begin(), known.end(), std::pair{hash, std::uint32_t{0}});
      while (at != known.end() && at->first == hash &&
             (items[at->second].size() != bytes.size() ||
              std::memcmp(items[at->second].data(), bytes.data(), bytes.size()) != 0)) {
        ++at;
      }
      if (at == known.end() || at->first != hash) {
        at = known.insert(at, {hash, static_cast<std::uint32_t>(items.size())});
        items.push_back(bytes);
        sizes.push_back(bytes.size());
      }
      record.blobs.push_back(at->second);
    }
    const Result<std::vector<std::byte>> file = SerializeWithoutData(model.executable.module());
    if (!file) return Forward(file, {"model '{}'", model.name});
    record.file.assign(reinterpret_cast<const char*>(file->data()), file->size());
    records.push_back(std::move(record));
  }
  ArchiveWriter model_bytes;
  sections::Models(model_bytes, records);
  ArchiveWriter blob_bytes;
  sections::Blobs(blob_bytes, sizes);
  if (!model_bytes.ok() || !blob_bytes.ok()) {
    return Fail(StatusCode::kInvalidArgument, "the bundle has a list of more than 2^32 - 1 elements");
  }
  Array<container::Section> sections;
  sections.push_back(
      {FindSection(static_cast<std::uint32_t>(SectionId::kModels)), std::move(model_bytes.bytes()), {}});
  sections.push_back(
      {FindSection(static_cast<std::uint32_t>(SectionId::kBlobs)), std::move(blob_bytes.bytes()), {}});
  return container::WriteSections(std::move(sections), items, sink);
}

}  // namespace

Status WriteBundle(Span<const BundledExecutable> models, const std::string& path) {
  Result<AtomicFile> file = AtomicFile::Create(path);
  if (!file) return Forward(file);
  container::FileSink sink(&*file);
  if (Status emitted = Emit(models, &sink); !emitted) return emitted;
  return file->Commit();
}

Result<std::vector<std::byte>> SerializeBundle(Span<const BundledExecutable> models) {
  container::MemorySink sink;
  if (Status emitted = Emit(models, &sink); !emitted) return Forward(emitted);
  return sink.Take();
}

}  // namespace rewire

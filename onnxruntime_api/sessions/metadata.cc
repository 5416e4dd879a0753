// SPDX-License-Identifier: Apache-2.0
//
// Metadata of models, which the executable has.
#include <algorithm>
#include <cstdint>

#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/sessions/session.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtModelMetadata {
  rewire::ModelMetadata model;
};

namespace rewire::onnxruntime_api {
namespace {

OrtStatus* Text(const std::string& text, OrtAllocator* allocator, char** out) noexcept {
  *out = AllocateText(allocator, text);
  return *out == nullptr ? OutOfMemory() : nullptr;
}

}  // namespace

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtModelMetadata{ReadModelMetadata(session->model->program().executable().module())};
    return nullptr;
  });
}
void ReleaseModelMetadata(OrtModelMetadata* metadata) noexcept { delete metadata; }

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                        char** out) noexcept {
  return Text(metadata->model.producer, allocator, out);
}
OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                     char** out) noexcept {
  return Text(metadata->model.graph, allocator, out);
}
OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                  char** out) noexcept {
  return Text(metadata->model.domain, allocator, out);
}
OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                       char** out) noexcept {
  return Text(metadata->model.description, allocator, out);
}
OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                            char** out) noexcept {
  return Text(metadata->model.graph_description, allocator, out);
}
OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* metadata, std::int64_t* out) noexcept {
  // A model that says nothing of its version has the largest one, as in ONNX Runtime.
  *out = metadata->model.version == 0 ? INT64_MAX : metadata->model.version;
  return nullptr;
}
OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                                const char* key, char** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = nullptr;  // and no error, for a key that there is not
    const auto& properties = metadata->model.properties;
    const auto found = std::find_if(properties.begin(), properties.end(),
                                    [&](const auto& property) { return property.first == key; });
    return found == properties.end() ? nullptr : Text(found->second, allocator, out);
  });
}
OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                                 char*** keys, std::int64_t* count) noexcept {
  const auto& properties = metadata->model.properties;
  *keys = nullptr;
  *count = 0;
  if (properties.empty()) return nullptr;
  char** const list = static_cast<char**>(allocator->Alloc(allocator, properties.size() * sizeof(char*)));
  if (list == nullptr) return OutOfMemory();
  std::size_t made = 0;
  for (const auto& [key, value] : properties) {
    list[made] = AllocateText(allocator, key);
    if (list[made++] != nullptr) continue;
    for (std::size_t i = 0; i < made; ++i) allocator->Free(allocator, list[i]);
    allocator->Free(allocator, list);
    return OutOfMemory();
  }
  *keys = list;
  *count = static_cast<std::int64_t>(made);
  return nullptr;
}

}  // namespace rewire::onnxruntime_api

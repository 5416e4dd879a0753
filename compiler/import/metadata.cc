// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/metadata.h"

#include <map>

namespace rewire::compiler {

ModelMetadata MetadataOf(const onnx::ModelProto& model) {
  ModelMetadata metadata;
  metadata.producer = model.producer_name();
  metadata.producer_version = model.producer_version();
  metadata.domain = model.domain();
  metadata.description = model.doc_string();
  metadata.graph = model.graph().name();
  metadata.graph_description = model.graph().doc_string();
  metadata.version = model.model_version();
  std::map<std::string, std::size_t> known;
  for (const onnx::StringStringEntryProto& entry : model.metadata_props()) {
    const auto [found, added] = known.emplace(entry.key(), metadata.properties.size());
    if (added) {
      metadata.properties.emplace_back(entry.key(), entry.value());
    } else {
      metadata.properties[found->second].second = entry.value();
    }
  }
  return metadata;
}

}  // namespace rewire::compiler

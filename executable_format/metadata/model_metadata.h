// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/metadata/model_metadata.h>.
//
// ModelMetadata: what an ONNX model says about itself, which the compiler keeps in the executable.
//
// It is part of the executable's metadata (docs/format.md). Hosts that run speech models, for example, read
// sampling rates and names of languages from its properties.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Fields of ONNX's ModelProto and GraphProto. All texts are UTF-8; one that the model does not have is empty.
struct ModelMetadata {
  std::string producer;
  std::string producer_version;
  std::string domain;
  std::string description;
  std::string graph;  // the graph's name
  std::string graph_description;
  std::int64_t version = 0;  // of the model
  Array<std::pair<std::string, std::string>>
      properties;  // metadata_props: keys and values, in the model's order
};

// Returns the metadata of the model that the module was compiled of, in librewire_prepare. All of it is empty
// if the module was not compiled of an ONNX model, or was stripped. Entries that do not follow docs/format.md
// are left out.
REWIRE_API ModelMetadata ReadModelMetadata(const Module& module);

// Adds the metadata to a module that has none, for ReadModelMetadata. Empty fields take no room. In the file,
// U+FFFD stands for bytes that are not UTF-8. The compiler calls it; it is in librewire_compiler.
REWIRE_API void AddModelMetadata(const ModelMetadata& metadata, Module* module);

}  // namespace rewire

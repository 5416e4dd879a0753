// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/executable_format/metadata/model_metadata.h"

namespace rewire::compiler {

// Returns the metadata of a model. Of properties with one key the last counts.
ModelMetadata MetadataOf(const onnx::ModelProto& model);

}  // namespace rewire::compiler

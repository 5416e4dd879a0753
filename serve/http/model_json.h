// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of models as JSON, each appended to a text.
#pragma once

#include <string>
#include <vector>

#include "rewire/serve/core/description.h"

namespace rewire::serve {

void WriteModelMetadata(const ModelDescription& model, std::string* text);
// The fields of Triton's model configuration that this server has.
void WriteModelConfig(const ModelDescription& model, std::string* text);
void WriteStatistics(const std::vector<ModelStatistics>& list, std::string* text);

}  // namespace rewire::serve

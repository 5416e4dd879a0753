// SPDX-License-Identifier: Apache-2.0
//
// The keys of a model's metadata in an executable, for reader and writer.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/executable_format/metadata/model_metadata.h"

namespace rewire::model_metadata {

inline constexpr std::string_view kPrefix = "model ";
inline constexpr std::string_view kVersion = "model version";

inline constexpr std::array<std::pair<std::string_view, std::string ModelMetadata::*>, 6> kTexts = {{
    {"model producer", &ModelMetadata::producer},
    {"model producer version", &ModelMetadata::producer_version},
    {"model domain", &ModelMetadata::domain},
    {"model description", &ModelMetadata::description},
    {"model graph", &ModelMetadata::graph},
    {"model graph description", &ModelMetadata::graph_description},
}};

// A property is two entries, since its key may be any text.
inline std::string PropertyKey(std::size_t index) { return "model property " + std::to_string(index); }
inline std::string PropertyValue(std::size_t index) { return "model value " + std::to_string(index); }

// The key of a part of a text that is too long for one entry. The parts after the first are counted from 1.
inline std::string PartKey(std::string_view key, std::size_t part) {
  return std::string(key) + (part == 0 ? "" : " +" + std::to_string(part));
}

}  // namespace rewire::model_metadata

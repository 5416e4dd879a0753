// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/metadata/model_metadata.h"

#include <charconv>
#include <map>

#include "rewire/executable_format/metadata/model_metadata_keys.h"

namespace rewire {
namespace {

using Entries = std::map<std::string_view, std::string_view>;

// False if there is no such text.
bool ReadText(const Entries& entries, const std::string& key, std::string* text) {
  std::size_t part = 0;
  for (auto found = entries.find(key); found != entries.end();
       found = entries.find(model_metadata::PartKey(key, part))) {
    *text += found->second;
    ++part;
  }
  return part != 0;
}

}  // namespace

ModelMetadata ReadModelMetadata(const Module& module) {
  Entries entries;
  for (const auto& [key, value] : module.metadata) {
    if (key.rfind(model_metadata::kPrefix, 0) == 0) entries.emplace(key, value);
  }
  ModelMetadata metadata;
  for (const auto& [key, field] : model_metadata::kTexts)
    ReadText(entries, std::string(key), &(metadata.*field));
  if (const auto version = entries.find(model_metadata::kVersion); version != entries.end()) {
    const std::string_view digits = version->second;
    std::from_chars(digits.data(), digits.data() + digits.size(), metadata.version);
  }
  for (;;) {
    const std::size_t index = metadata.properties.size();
    std::pair<std::string, std::string> property;
    const bool has_key = ReadText(entries, model_metadata::PropertyKey(index), &property.first);
    const bool has_value = ReadText(entries, model_metadata::PropertyValue(index), &property.second);
    if (!has_key && !has_value) return metadata;
    metadata.properties.push_back(std::move(property));
  }
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "rewire/base/utf8.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/executable_format/metadata/model_metadata_keys.h"

namespace rewire {
namespace {

constexpr std::size_t kLongestCharacter = 4;  // bytes of UTF-8

// The size of the character at the front of a text that is not empty, or 0 if it is not UTF-8.
std::size_t CharacterSize(std::string_view text) {
  for (std::size_t size = 1; size <= std::min(text.size(), kLongestCharacter); ++size) {
    if (IsUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

class TextWriter {
 public:
  TextWriter(std::string key, Module* module) : key_(std::move(key)), module_(module) {}

  // An empty text is an entry, too.
  void Write(std::string_view text) {
    while (!text.empty()) {
      const std::size_t size = CharacterSize(text);
      Put(size == 0 ? "\xEF\xBF\xBD" : text.substr(0, size));
      text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    Finish();
  }

 private:
  void Put(std::string_view character) {
    if (part_.size() + character.size() > FormatLimits().text_bytes) Finish();
    part_ += character;
  }
  void Finish() {
    module_->metadata.emplace_back(model_metadata::PartKey(key_, parts_++), std::move(part_));
    part_.clear();
  }

  std::string key_;
  Module* module_;
  std::string part_;
  std::size_t parts_ = 0;
};

}  // namespace

void AddModelMetadata(const ModelMetadata& metadata, Module* module) {
  for (const auto& [key, field] : model_metadata::kTexts) {
    if (!(metadata.*field).empty()) TextWriter(std::string(key), module).Write(metadata.*field);
  }
  if (metadata.version != 0)
    module->metadata.emplace_back(std::string(model_metadata::kVersion), std::to_string(metadata.version));
  for (std::size_t i = 0; i < metadata.properties.size(); ++i) {
    const auto& [key, value] = metadata.properties[i];
    TextWriter(model_metadata::PropertyKey(i), module).Write(key);
    TextWriter(model_metadata::PropertyValue(i), module).Write(value);
  }
}

}  // namespace rewire

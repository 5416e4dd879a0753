// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/string_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rewire/base/utf8.h"
#include "rewire/executable_format/limits.h"

namespace rewire::compiler {
namespace {

std::string ListText(const nlohmann::json& list) { return list.dump(); }

}  // namespace

const Strings* StringTables::Find(const Value* value) const {
  const auto found = strings_.find(value);
  return found == strings_.end() ? nullptr : found->second.get();
}

void StringTables::Set(const Value* value, Strings strings) {
  strings_[value] = std::make_shared<const Strings>(std::move(strings));
}

void StringTables::Copy(const Value* from, const Value* value) {
  const auto found = strings_.find(from);
  if (found == strings_.end()) return;
  std::shared_ptr<const Strings> strings = found->second;
  strings_[value] = std::move(strings);
}

void StringTables::SetKeys(const Value* value, Strings keys) {
  // What is no text would be no JSON either; Metadata says so.
  const bool is_text =
      std::all_of(keys.begin(), keys.end(), [](const std::string& key) { return IsUtf8(key); });
  keys_[value] = is_text ? ListText(keys) : std::string();
}

void StringTables::SetKeys(const Value* value, std::vector<std::int64_t> keys) {
  keys_[value] = ListText(keys);
}

Result<std::vector<std::pair<std::string, std::string>>> StringTables::Metadata(
    const std::vector<Value*>& outputs) const {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (const Strings* strings = Find(outputs[i])) {
      const bool is_text =
          std::all_of(strings->begin(), strings->end(), [](const auto& each) { return IsUtf8(each); });
      entries.emplace_back(fmt::format("strings main.{}", i), is_text ? ListText(*strings) : std::string());
    }
    if (const auto keys = keys_.find(outputs[i]); keys != keys_.end())
      entries.emplace_back(fmt::format("keys main.{}", i), keys->second);
  }
  const std::size_t most = FormatLimits().text_bytes;
  for (const auto& [key, list] : entries) {
    if (list.empty()) return Fail(StatusCode::kUnsupported, fmt::format("the list '{}' is not UTF-8", key));
    if (list.size() > most) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("the list '{}' takes {} bytes, the limit is {}", key, list.size(), most));
    }
  }
  return entries;
}

std::int64_t StringPositions::Of(const std::string& text) {
  const auto [at, added] = positions_.emplace(text, static_cast<std::int64_t>(strings_.size()));
  if (added) strings_.push_back(text);
  return at->second;
}

}  // namespace rewire::compiler

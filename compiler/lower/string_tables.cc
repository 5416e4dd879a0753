// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/string_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rewire/base/utf8.h"
#include "rewire/executable_format/limits.h"

namespace rewire::compiler {
namespace {

std::string ListText(const nlohmann::json& list) { return list.dump(); }

// The places of a list's parts among the inputs or outputs.
std::string PlacesText(std::size_t offsets, std::size_t bytes) {
  return nlohmann::json{{"offsets", offsets}, {"bytes", bytes}}.dump();
}

}  // namespace

const Strings* StringTables::Find(const Value* value) const {
  const auto found = lists_.find(value);
  return found == lists_.end() ? nullptr : found->second.strings.get();
}

const StringList* StringTables::Computed(const Value* value) const {
  const auto found = lists_.find(value);
  return found == lists_.end() || found->second.strings ? nullptr : &found->second.list;
}

void StringTables::Set(const Value* value, Strings strings) {
  lists_[value] = {std::make_shared<const Strings>(std::move(strings)), {}};
}

void StringTables::Set(const Value* value, StringList list) {
  const HostTensor *list_offsets = ElementsOf(list.offsets), *list_bytes = ElementsOf(list.bytes);
  if (list_offsets == nullptr || list_bytes == nullptr) {
    lists_[value] = {nullptr, list};
    return;
  }
  const auto bytes = list_bytes->bytes.view;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto stored = list_offsets->bytes.view;
  std::vector<std::int64_t> offsets(stored.size() / sizeof(std::int64_t));
  std::memcpy(offsets.data(), stored.data(), offsets.size() * sizeof(std::int64_t));
  Strings strings;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    strings.emplace_back(text.substr(static_cast<std::size_t>(offsets[i]),
                                     static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
  }
  Set(value, std::move(strings));
}

void StringTables::Copy(const Value* from, const Value* value) {
  const auto found = lists_.find(from);
  if (found == lists_.end() || from == value) return;
  Entry entry = found->second;
  lists_[value] = std::move(entry);
}

Status StringTables::AddLists(std::vector<Value*>* outputs, std::vector<std::string>* names) const {
  const std::size_t count = outputs->size();
  for (std::size_t i = 0; i < count; ++i) {
    const StringList* list = Computed((*outputs)[i]);
    if (list == nullptr) continue;
    for (const auto& [part, end] : {std::pair(list->offsets, ".offsets"), std::pair(list->bytes, ".bytes")}) {
      const std::string name = (*names)[i] + end;
      if (std::find(names->begin(), names->end(), name) != names->end())
        return Fail(StatusCode::kUnsupported,
                    fmt::format("the name '{}' is needed for an output's strings", name));
      outputs->push_back(part);
      names->push_back(name);
    }
  }
  return {};
}

void StringTables::SetKeys(const Value* value, Strings keys) {
  // Strings that are no text would be no JSON either; Metadata says so.
  const bool is_text =
      std::all_of(keys.begin(), keys.end(), [](const std::string& key) { return IsUtf8(key); });
  keys_[value] = is_text ? ListText(keys) : std::string();
}

void StringTables::SetKeys(const Value* value, const std::vector<std::int64_t>& keys) {
  keys_[value] = ListText(keys);
}

Result<std::vector<std::pair<std::string, std::string>>> StringTables::Metadata(
    const std::vector<Value*>& inputs, const std::vector<Value*>& outputs) const {
  std::vector<std::pair<std::string, std::string>> entries;
  const auto place = [&](const Value* input) {
    return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin());
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const auto list = inputs_.find(inputs[i]); list != inputs_.end())
      entries.emplace_back(fmt::format("input strings main.{}", i),
                           PlacesText(place(list->second.offsets), place(list->second.bytes)));
  }
  // AddLists put the parts behind all outputs, in their order. Outputs of one list have parts of their own.
  const auto computed = static_cast<std::size_t>(std::count_if(
      outputs.begin(), outputs.end(), [&](const Value* output) { return Computed(output) != nullptr; }));
  std::size_t part = outputs.size() - 2 * computed;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (const Strings* strings = Find(outputs[i])) {
      const bool is_text =
          std::all_of(strings->begin(), strings->end(), [](const auto& each) { return IsUtf8(each); });
      entries.emplace_back(fmt::format("strings main.{}", i), is_text ? ListText(*strings) : std::string());
    }
    if (Computed(outputs[i]) != nullptr) {
      entries.emplace_back(fmt::format("strings main.{}", i), PlacesText(part, part + 1));
      part += 2;
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

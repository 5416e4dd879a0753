// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/names/name_map.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "rewire/base/mapped_file.h"
#include "rewire/base/message.h"

namespace rewire {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool ReadTexts(const Json& json, Array<std::string>* texts) {
  if (!json.is_array()) return false;
  for (const Json& text : json) {
    if (!text.is_string()) return false;
    texts->push_back(text.get<std::string>());
  }
  return true;
}

bool ReadNotes(const Json& json, Array<SourceNote>* notes) {
  if (!json.is_array()) return false;
  for (const Json& note : json) {
    if (!note.is_array() || note.size() != 2 || !note[0].is_number_unsigned() || !note[1].is_string())
      return false;
    notes->push_back({note[0].get<std::uint32_t>(), note[1].get<std::string>()});
  }
  return true;
}

bool ReadPairs(const Json& json, Array<std::pair<std::string, std::string>>* pairs) {
  if (!json.is_array()) return false;
  for (const Json& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) return false;
    pairs->emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return true;
}

Status CheckCount(std::string_view what, std::size_t in_module, std::size_t in_map) {
  if (in_module == in_map) return {};
  return Fail(StatusCode::kInvalidArgument,
              Format("the map of names is not this module's: the module has {} {}, the map {}", in_module,
                     what, in_map));
}

}  // namespace

Result<NameMap> NameMap::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Fail(StatusCode::kInvalidArgument, "the map of names is not JSON");
  const auto fail = [](const std::string& what) {
    return Fail(StatusCode::kInvalidArgument, "the map of names is malformed: " + what);
  };
  if (!json.is_object() || !json.contains("rewire_names")) return fail("it has no 'rewire_names'");
  if (json["rewire_names"] != kNameMapVersion) {
    return Fail(StatusCode::kUnsupported, Format("the map of names has version {}, this library reads {}",
                                                 json["rewire_names"].dump(), kNameMapVersion));
  }
  for (const char* key : {"functions", "symbols", "strings", "constants", "kernels", "metadata"}) {
    if (!json.contains(key)) return fail(Format("it has no '{}'", key));
  }
  NameMap map;
  if (!ReadTexts(json["symbols"], &map.symbols_)) return fail("'symbols' is not a list of strings");
  if (!ReadTexts(json["strings"], &map.strings_)) return fail("'strings' is not a list of strings");
  if (!ReadTexts(json["constants"], &map.constants_)) return fail("'constants' is not a list of strings");
  if (!ReadTexts(json["kernels"], &map.kernels_)) return fail("'kernels' is not a list of strings");
  if (!ReadPairs(json["metadata"], &map.metadata_)) return fail("'metadata' is not a list of pairs");
  if (!json["functions"].is_array()) return fail("'functions' is not a list");
  for (const Json& entry : json["functions"]) {
    FunctionNames& function = map.functions_.emplace_back();
    const bool good = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                      entry.contains("inputs") && ReadTexts(entry["inputs"], &function.inputs) &&
                      entry.contains("outputs") && ReadTexts(entry["outputs"], &function.outputs) &&
                      entry.contains("notes") && ReadNotes(entry["notes"], &function.notes);
    if (!good) return fail(Format("function {} is not complete", map.functions_.size() - 1));
    function.name = entry["name"].get<std::string>();
  }
  return map;
}

const NameMap::FunctionNames* NameMap::Find(std::string_view printed) const {
  if (const std::optional<std::uint64_t> index = ParseNumber(printed)) {
    return *index < functions_.size() ? &functions_[*index] : nullptr;
  }
  for (const FunctionNames& function : functions_) {
    if (function.name == printed) return &function;
  }
  return nullptr;
}

std::string NameMap::Restore(std::string_view text) const {
  constexpr std::string_view kBetweenWords = " \n\t()[]{}'\"`,:;";
  std::string restored;
  while (!text.empty()) {
    const std::size_t skip = std::min(text.find_first_not_of(kBetweenWords), text.size());
    restored += text.substr(0, skip);
    text.remove_prefix(skip);
    const std::string_view word = text.substr(0, text.find_first_of(kBetweenWords));
    text.remove_prefix(word.size());

    const std::size_t at = word.rfind('@');
    const FunctionNames* function = nullptr;
    std::optional<std::uint64_t> pc;
    if (at != std::string_view::npos) {
      function = Find(word.substr(0, at));
      pc = ParseNumber(word.substr(at + 1));
    }
    if (function == nullptr || !pc) {
      restored += word;
      continue;
    }
    restored += Format("{}@{}", function->name, *pc);
    for (const SourceNote& note : function->notes) {
      if (note.pc == *pc) restored += " [" + note.text + "]";
    }
  }
  return restored;
}

Result<Module> NameMap::Restore(const Module& stripped) const {
  const std::pair<std::string_view, std::pair<std::size_t, std::size_t>> counts[] = {
      {"functions", {stripped.functions.size(), functions_.size()}},
      {"symbols", {stripped.symbols.size(), symbols_.size()}},
      {"strings", {stripped.strings.size(), strings_.size()}},
      {"constants", {stripped.constants.size(), constants_.size()}},
      {"kernels", {stripped.kernels.size(), kernels_.size()}}};
  for (const auto& [what, count] : counts) {
    if (Status status = CheckCount(what, count.first, count.second); !status) return Forward(status);
  }
  Module module = stripped;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    Function& function = module.functions[i];
    const FunctionNames& names = functions_[i];
    const std::string of = Format(" of function {}", i);
    if (Status status = CheckCount("inputs" + of, function.inputs.size(), names.inputs.size()); !status) {
      return Forward(status);
    }
    if (Status status = CheckCount("outputs" + of, function.output_names.size(), names.outputs.size());
        !status) {
      return Forward(status);
    }
    function.name = names.name;
    for (std::size_t j = 0; j < names.inputs.size(); ++j) function.inputs[j].name = names.inputs[j];
    function.output_names = names.outputs;
    function.notes = names.notes;
  }
  module.symbols = symbols_;
  module.strings = strings_;
  for (std::size_t i = 0; i < constants_.size(); ++i) module.constants[i].name = constants_[i];
  for (std::size_t i = 0; i < kernels_.size(); ++i) module.kernels[i].debug_name = kernels_[i];
  module.metadata = metadata_;
  return module;
}

Result<Executable> RestoreNames(const Executable& stripped, const std::string& path) {
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size());
  const Result<NameMap> names = NameMap::Parse(text);
  if (!names) return Forward(names, path);
  Result<Module> restored = names->Restore(stripped.module());
  if (!restored) return Forward(restored, path);
  Result<Executable> executable = Executable::FromModule(*std::move(restored));
  if (!executable) return Forward(executable, path);
  return executable;
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "rewire/base/array.h"

namespace rewire {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMapVersion = 1;

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool IsKept(const Function& function, const StripOptions& options) {
  return function.name == kInitFunction ||
         std::find(options.keep_functions.begin(), options.keep_functions.end(), function.name) !=
             options.keep_functions.end();
}

Json FunctionMap(const Function& function) {
  Json inputs = Json::array(), notes = Json::array();
  for (const NamedType& input : function.inputs) inputs.push_back(input.name);
  for (const SourceNote& note : function.notes) notes.push_back(Json::array({note.pc, note.text}));
  return {{"name", function.name}, {"inputs", inputs}, {"outputs", function.output_names}, {"notes", notes}};
}

std::string MapOf(const Module& module) {
  Json map = {{"rewire_names", kMapVersion}, {"functions", Json::array()}, {"symbols", module.symbols},
              {"strings", module.strings},   {"constants", Json::array()}, {"kernels", Json::array()},
              {"metadata", Json::array()}};
  for (const Function& function : module.functions) map["functions"].push_back(FunctionMap(function));
  for (const Constant& constant : module.constants) map["constants"].push_back(constant.name);
  for (const KernelImport& kernel : module.kernels) map["kernels"].push_back(kernel.debug_name);
  for (const auto& [key, value] : module.metadata) map["metadata"].push_back(Json::array({key, value}));
  // Names and texts are UTF-8 in every verified module; in others, what is not becomes U+FFFD.
  return map.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void StripFunction(Function& function, std::size_t index, bool keep) {
  function.notes.clear();
  if (keep) return;
  function.name = std::to_string(index);
  for (std::size_t i = 0; i < function.inputs.size(); ++i) function.inputs[i].name = std::to_string(i);
  for (std::size_t i = 0; i < function.output_names.size(); ++i) function.output_names[i] = std::to_string(i);
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
              fmt::format("the map of names is not this module's: the module has {} {}, the map {}",
                          in_module, what, in_map));
}

// What elements of outputs stand for (docs/format.md) is part of the result. Such lists stay, under the names
// that their functions get.
Array<std::pair<std::string, std::string>> ListsOfOutputs(const Module& module, const Module& stripped) {
  Array<std::pair<std::string, std::string>> lists;
  for (const auto& [key, value] : module.metadata) {
    for (const std::string prefix : {"strings ", "input strings ", "keys "}) {
      for (std::size_t i = 0; i < module.functions.size(); ++i) {
        const std::string function = prefix + module.functions[i].name + ".";
        if (key.rfind(function, 0) == 0 && ParseNumber(key.substr(function.size())))
          lists.emplace_back(prefix + stripped.functions[i].name + key.substr(function.size() - 1), value);
      }
    }
  }
  return lists;
}

}  // namespace

Result<StrippedModule> StripModule(const Module& module, const StripOptions& options) {
  for (const std::string& name : options.keep_functions) {
    const bool found = std::any_of(module.functions.begin(), module.functions.end(),
                                   [&](const Function& function) { return function.name == name; });
    if (!found) return Fail(StatusCode::kNotFound, fmt::format("there is no function '{}' to keep", name));
    if (ParseNumber(name)) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("the name '{}' cannot be kept: numbers are what other functions get", name));
    }
  }
  StrippedModule stripped{module, MapOf(module)};
  Module& out = stripped.module;
  for (std::size_t i = 0; i < out.functions.size(); ++i) {
    StripFunction(out.functions[i], i, IsKept(out.functions[i], options));
  }
  for (std::size_t i = 0; i < out.symbols.size(); ++i) out.symbols[i] = std::to_string(i);
  for (std::size_t i = 0; i < out.strings.size(); ++i) out.strings[i] = std::to_string(i);
  for (Constant& constant : out.constants) {
    if (constant.kind != ConstantKind::kParameter) constant.name.clear();
  }
  for (KernelImport& kernel : out.kernels) kernel.debug_name.clear();
  out.metadata = ListsOfOutputs(module, out);
  return stripped;
}

Result<NameMap> NameMap::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Fail(StatusCode::kInvalidArgument, "the map of names is not JSON");
  const auto fail = [](const std::string& what) {
    return Fail(StatusCode::kInvalidArgument, "the map of names is malformed: " + what);
  };
  if (!json.is_object() || !json.contains("rewire_names")) return fail("it has no 'rewire_names'");
  if (json["rewire_names"] != kMapVersion) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("the map of names has version {}, this library reads {}",
                            json["rewire_names"].dump(), kMapVersion));
  }
  for (const char* key : {"functions", "symbols", "strings", "constants", "kernels", "metadata"}) {
    if (!json.contains(key)) return fail(fmt::format("it has no '{}'", key));
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
    if (!good) return fail(fmt::format("function {} is not complete", map.functions_.size() - 1));
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
    restored += fmt::format("{}@{}", function->name, *pc);
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
    const std::string of = fmt::format(" of function {}", i);
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

}  // namespace rewire

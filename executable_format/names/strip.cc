// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/names/strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "rewire/base/array.h"
#include "rewire/executable_format/names/name_map.h"
#include "rewire/executable_format/names/no_function.h"

namespace rewire {
namespace {

using Json = nlohmann::ordered_json;

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
  Json map = {{"rewire_names", kNameMapVersion}, {"functions", Json::array()}, {"symbols", module.symbols},
              {"strings", module.strings},       {"constants", Json::array()}, {"kernels", Json::array()},
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

// The strings that elements of outputs stand for (docs/format.md) are part of the result. Such lists stay,
// under the names that their functions get.
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
    if (PositionOfFunction(module, name) == module.functions.size()) return Forward(NoFunction(module, name));
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
  for (KernelImport& kernel : out.kernels) {
    kernel.debug_name.clear();
    const auto is_name = [](const Attribute& attribute) { return attribute.name.rfind("debug.", 0) == 0; };
    kernel.attributes.erase(std::remove_if(kernel.attributes.begin(), kernel.attributes.end(), is_name),
                            kernel.attributes.end());
  }
  out.metadata = ListsOfOutputs(module, out);
  return stripped;
}

}  // namespace rewire

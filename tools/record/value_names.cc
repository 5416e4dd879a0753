// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/value_names.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace rewire::tools {
namespace {

constexpr std::string_view kPrefix = "values ";

std::uint64_t Place(std::uint32_t function, std::uint32_t pc) { return std::uint64_t{function} << 32 | pc; }

}  // namespace

ValueNames::ValueNames(const Module& module) {
  for (const auto& [key, value] : module.metadata) {
    const std::size_t dot = key.rfind('.');
    if (key.rfind(kPrefix, 0) != 0 || dot == std::string::npos || dot < kPrefix.size()) continue;
    const std::string_view name = std::string_view(key).substr(kPrefix.size(), dot - kPrefix.size());
    for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
      if (module.functions[i].name == name) Read(value, module, i);
    }
  }
}

void ValueNames::Read(const std::string& text, const Module& module, std::uint32_t function) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return;
  for (const nlohmann::json& entry : list) {
    if (!entry.is_array() || entry.size() < 3 || entry.size() > 4) continue;
    if (!entry[0].is_number_unsigned() || !entry[1].is_number_unsigned() || !entry[2].is_string()) continue;
    const auto pc = entry[0].get<std::uint64_t>(), reg = entry[1].get<std::uint64_t>();
    if (pc >= module.functions[function].code.size() || reg >= module.functions[function].register_count)
      continue;
    const bool channels_last = entry.size() == 4 && entry[3] == "channels last";
    places_[Place(function, static_cast<std::uint32_t>(pc))].push_back(
        {static_cast<std::uint32_t>(reg), entry[2].get<std::string>(), channels_last});
  }
}

Span<const NamedRegister> ValueNames::At(std::uint32_t function, std::uint32_t pc) const {
  const auto found = places_.find(Place(function, pc));
  if (found == places_.end()) return {};
  return {found->second.data(), found->second.size()};
}

NoteParts SplitNote(std::string_view note) {
  const std::size_t quote = note.find(" '");
  if (quote == std::string_view::npos || note.back() != '\'' || quote + 3 > note.size())
    return {note, {}, {}};
  return {note, note.substr(0, quote), note.substr(quote + 2, note.size() - quote - 3)};
}

}  // namespace rewire::tools

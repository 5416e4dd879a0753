// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/name_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "rewire/base/near_names.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

Result<std::uint32_t> Find(Span<const std::string> names, std::string_view target, const char* what,
                           const std::string& function) {
  const auto found = std::find(names.begin(), names.end(), target);
  if (found != names.end()) return static_cast<std::uint32_t>(found - names.begin());
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), index);
  if (error == std::errc() && end == target.data() + target.size()) {
    if (index < names.size()) return index;
    return Fail(StatusCode::kNotFound, fmt::format("function {} has no {} {}: it has {}, counted from 0",
                                                   function, what, index, names.size()));
  }
  return Fail(StatusCode::kNotFound, fmt::format("function {} has no {} '{}'{}", function, what, target,
                                                 KnownNames(fmt::format("{}s", what), target, names)));
}

}  // namespace

Result<std::uint32_t> FindInput(const Function& function, std::string_view target) {
  std::vector<std::string> names;
  for (const NamedType& input : function.inputs) names.push_back(input.name);
  return Find(names, target, "input", function.name);
}

Result<std::uint32_t> FindOutput(const Function& function, std::string_view target) {
  return Find(function.output_names, target, "output", function.name);
}

Result<SymbolSize> FindSymbol(const Module& module, std::string_view text) {
  const std::string_view name = text.substr(0, text.rfind('='));
  const auto found = std::find(module.symbols.begin(), module.symbols.end(), name);
  if (name.size() < text.size() && found == module.symbols.end()) {
    return Fail(StatusCode::kNotFound, fmt::format("no symbolic dimension is called '{}'{}", name,
                                                   KnownNames("symbolic dimensions", name, module.symbols)));
  }
  const Result<NamedSize> size = ParseNamedSize(text);
  if (!size) return Forward(size);
  return SymbolSize{static_cast<std::uint32_t>(found - module.symbols.begin()), size->size};
}

std::vector<std::string> OpenDimensions(const Module& module, const Function& function) {
  std::vector<std::string> open;
  for (const NamedType& input : function.inputs) {
    for (const TypeNode& node : input.type.nodes) {
      for (const Dim dim : node.dims) {
        if (!IsSymbol(dim)) continue;
        const std::uint32_t symbol = SymbolOf(dim);
        const bool limited = symbol < module.symbol_limits.size() && module.symbol_limits[symbol] != kNoLimit;
        const std::string& name = module.symbols[symbol];
        if (!limited && std::find(open.begin(), open.end(), name) == open.end()) open.push_back(name);
      }
    }
  }
  return open;
}

std::string OutputName(const Function& function, std::uint32_t leaf) {
  const bool named = leaf < function.output_names.size() && !function.output_names[leaf].empty();
  return named ? function.output_names[leaf] : std::to_string(leaf);
}

}  // namespace rewire::tools

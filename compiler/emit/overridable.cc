// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/overridable.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "rewire/base/utf8.h"
#include "rewire/executable_format/limits.h"

namespace rewire {
namespace compiler {
namespace {

using nlohmann::json;

std::string KeyOf(std::size_t index) { return fmt::format("overridable {}", index); }

bool IsText(const OverridableInitializer& initializer) {
  const auto is_text = [](const OverridableInitializer::Dim& dim) { return IsUtf8(dim.name); };
  return IsUtf8(initializer.name) &&
         (!initializer.shape || std::all_of(initializer.shape->begin(), initializer.shape->end(), is_text));
}

// A size, a name, or null for an open dimension without one.
json DimJson(const OverridableInitializer::Dim& dim) {
  if (dim.size >= 0) return dim.size;
  return dim.name.empty() ? json() : json(dim.name);
}

// Anyone may have written the file. nullopt: it is no such entry.
std::optional<OverridableInitializer> Parse(const std::string& text) {
  const json entry = json::parse(text, nullptr, false);
  if (!entry.is_array() || entry.size() != 3 || !entry[0].is_string() || !entry[1].is_string())
    return std::nullopt;
  OverridableInitializer initializer{entry[0].get<std::string>(), entry[1].get<std::string>(), std::nullopt};
  if (entry[2].is_null()) return initializer;
  if (!entry[2].is_array()) return std::nullopt;
  auto& dims = initializer.shape.emplace();
  for (const json& dim : entry[2]) {
    OverridableInitializer::Dim& read = dims.emplace_back();
    if (dim.is_number_integer()) {
      read.size = std::max<std::int64_t>(-1, dim.get<std::int64_t>());
    } else if (dim.is_string()) {
      read.name = dim.get<std::string>();
    } else if (!dim.is_null()) {
      return std::nullopt;
    }
  }
  return initializer;
}

}  // namespace

void AddOverridable(const std::vector<OverridableInitializer>& initializers, Module* module) {
  std::size_t count = 0;
  for (const OverridableInitializer& each : initializers) {
    if (!IsText(each)) continue;
    json shape;
    if (each.shape) {
      shape = json::array();
      for (const OverridableInitializer::Dim& dim : *each.shape) shape.push_back(DimJson(dim));
    }
    std::string text = json::array({each.name, each.element_type, std::move(shape)}).dump();
    if (text.size() > FormatLimits().text_bytes) continue;
    module->metadata.emplace_back(KeyOf(count++), std::move(text));
  }
}

std::vector<OverridableInitializer> ReadOverridable(const Module& module) {
  std::vector<OverridableInitializer> found;
  std::size_t count = 0;
  // The entries stand in their order, whatever lies between them.
  for (const auto& [key, value] : module.metadata) {
    if (key != KeyOf(count)) continue;
    ++count;
    if (std::optional<OverridableInitializer> read = Parse(value)) found.push_back(*std::move(read));
  }
  return found;
}

}  // namespace compiler

std::vector<OverridableInitializer> OverridableInitializers(const Executable& executable) {
  return compiler::ReadOverridable(executable.module());
}

}  // namespace rewire

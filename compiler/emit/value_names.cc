// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/value_names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "rewire/base/utf8.h"
#include "rewire/executable_format/limits.h"

namespace rewire::compiler {

void AddValueNames(const std::string& function, const std::vector<ValuePlace>& places, Module* module) {
  const std::size_t most = FormatLimits().text_bytes;
  std::string text;
  std::size_t entries = 0;
  const auto finish = [&] {
    if (text.empty()) return;
    module->metadata.emplace_back(fmt::format("values {}.{}", function, entries++), text + "]");
    text.clear();
  };
  for (const ValuePlace& place : places) {
    if (!IsPrintable(place.name)) continue;
    nlohmann::json entry = {place.pc, place.reg, place.name};
    if (place.channels_last) entry.push_back("channels last");
    const std::string written = entry.dump();
    if (written.size() + 2 > most) continue;
    if (text.size() + written.size() + 2 > most) finish();
    text += (text.empty() ? "[" : ",") + written;
  }
  finish();
}

}  // namespace rewire::compiler

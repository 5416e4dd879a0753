// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/tools/record/value_names.h"

namespace rewire::tools {
namespace {

std::optional<std::uint32_t> ParsePc(std::string_view text) {
  std::uint32_t pc = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pc);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pc;
}

Result<std::vector<Site>> AtPc(const Module& module, std::uint32_t index, std::uint32_t pc) {
  const Function& function = module.functions[index];
  const std::vector<std::uint32_t> starts = InstructionStarts(function);
  const auto next = std::lower_bound(starts.begin(), starts.end(), pc);
  if (next != starts.end() && *next == pc) return std::vector<Site>{{index, pc}};
  const std::string before = next == starts.begin() ? "" : fmt::format(" {}", *(next - 1));
  const std::string after = next == starts.end() ? "" : fmt::format(" {}", *next);
  return Fail(StatusCode::kNotFound,
              fmt::format("no instruction of {} starts at {}; the nearest ones start at{}{}{}", function.name,
                          pc, before, before.empty() || after.empty() ? "" : " and", after));
}

std::vector<Site> OfNode(const Module& module, std::string_view text) {
  std::vector<Site> sites;
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    // The nodes of the last note that `text` names: a stretch of code ends where another one is named.
    std::vector<std::string_view> before;
    for (const SourceNote& note : module.functions[f].notes) {
      std::vector<std::string_view> named;
      bool begins = false;
      for (const std::string_view node : NodesOf(note.text)) {
        const NoteParts names = SplitNote(node);
        if (text.empty() || (names.whole != text && names.name != text && names.kind != text)) continue;
        begins = begins || std::find(before.begin(), before.end(), node) == before.end();
        named.push_back(node);
      }
      if (begins) sites.push_back({f, note.pc});
      before = std::move(named);
    }
  }
  return sites;
}

}  // namespace

std::vector<std::uint32_t> InstructionStarts(const Function& function) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
    starts.push_back(pc);
  }
  return starts;
}

Result<std::vector<Site>> FindPlace(const Module& module, std::string_view text,
                                    std::optional<std::uint32_t> here) {
  const auto function_named = [&](std::string_view name) {
    const auto same = [&](const Function& function) { return function.name == name; };
    const auto found = std::find_if(module.functions.begin(), module.functions.end(), same);
    return static_cast<std::uint32_t>(found - module.functions.begin());
  };
  const std::uint32_t none = static_cast<std::uint32_t>(module.functions.size());
  if (const std::uint32_t function = function_named(text); function != none) {
    return std::vector<Site>{{function, 0}};
  }
  const std::size_t at = text.rfind('@');
  const std::string_view number = at == std::string_view::npos ? text : text.substr(at + 1);
  if (const std::optional<std::uint32_t> pc = ParsePc(number)) {
    const std::string_view name = at == std::string_view::npos ? "" : text.substr(0, at);
    if (const std::uint32_t function = function_named(name); function != none) {
      return AtPc(module, function, *pc);
    }
    if (name.empty() && here) return AtPc(module, *here, *pc);
  }
  std::vector<Site> sites = OfNode(module, text);
  if (!sites.empty()) return sites;
  return Fail(StatusCode::kNotFound, fmt::format("no function or node of the model is called '{}'{}", text,
                                                 DidYouMean(text, PlaceNames(module))));
}

std::string SiteText(const Module& module, const Site& site) {
  return fmt::format("{}@{}", module.functions[site.function].name, site.pc);
}

std::vector<std::string> PlaceNames(const Module& module) {
  std::set<std::string> names;
  for (const Function& function : module.functions) {
    names.insert(function.name);
    for (const SourceNote& note : function.notes) {
      for (const std::string_view node : NodesOf(note.text)) {
        const NoteParts parts = SplitNote(node);
        names.emplace(parts.name.empty() ? parts.whole : parts.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace rewire::tools

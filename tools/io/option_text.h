// SPDX-License-Identifier: Apache-2.0
//
// A tool's options in other forms than --help: completion for shells, and a manual page. All are made from
// the table of options, so none lacks one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rewire::tools {

// The kind of text that is completed behind an option, or in place of an argument.
enum class OptionValue : std::uint8_t { kNone, kFile, kChoice, kOther };

struct OptionEntry {
  std::vector<std::string> names;  // "-o", "--output"; empty for an argument that has no option
  std::string type;                // "FILE"; empty for a flag
  std::string help;
  std::string group;
  OptionValue value = OptionValue::kNone;
  std::vector<std::string> choices;  // of kChoice
};

struct CommandEntry {
  std::string name;  // empty for the tool itself
  std::string help;
  std::vector<OptionEntry> options;
  std::vector<OptionEntry> arguments;
};

// The tool first, then its commands.
std::vector<CommandEntry> OptionTable(const CLI::App& app);

std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);
// In the language of man(7).
std::string ManualPage(const CLI::App& app, const std::string& version);

}  // namespace rewire::tools

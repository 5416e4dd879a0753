// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/option_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rewire::tools {
namespace {

// "TEXT:{model,int8}" has choices.
std::vector<std::string> ChoicesOf(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::size_t begin = open + 1;
  for (std::size_t at = begin; at <= close; ++at) {
    if (at != close && type[at] != ',') continue;
    choices.push_back(type.substr(begin, at - begin));
    begin = at + 1;
  }
  return choices;
}

OptionEntry EntryOf(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  entry.help = option.get_description();
  entry.group = option.get_group();
  if (option.get_items_expected_max() == 0) return entry;  // a flag
  const std::string type = option.get_type_name();
  entry.type = type.substr(0, type.find(":{"));
  entry.choices = ChoicesOf(type);
  if (!entry.choices.empty()) {
    entry.value = OptionValue::kChoice;
    entry.type = fmt::format("{}", fmt::join(entry.choices, "|"));
  } else if (entry.type.find("FILE") != std::string::npos || entry.type == "LIBRARY" ||
             entry.type == "FOLDER" || entry.type == "PROGRAM" || entry.names.empty() ||
             entry.type.find('@') != std::string::npos || entry.type == "NAME=VALUE") {
    entry.value = OptionValue::kFile;
  } else {
    entry.value = OptionValue::kOther;
  }
  if (entry.type.empty() || entry.type == "TEXT") entry.type = "VALUE";
  return entry;
}

CommandEntry CommandOf(const CLI::App& app, bool is_tool) {
  CommandEntry command;
  if (!is_tool) command.name = app.get_name();
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    if (option->get_positional() && !option->nonpositional()) {
      command.arguments.push_back(EntryOf(*option));
      command.arguments.back().type = option->get_name(true);
    } else {
      command.options.push_back(EntryOf(*option));
    }
  }
  return command;
}

}  // namespace

std::vector<CommandEntry> OptionTable(const CLI::App& app) {
  std::vector<CommandEntry> commands = {CommandOf(app, true)};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(CommandOf(*command, false));
  }
  return commands;
}

}  // namespace rewire::tools

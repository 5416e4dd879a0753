// SPDX-License-Identifier: Apache-2.0
// Completion for bash, zsh and fish. Values that name a file behind "@", as in x=@x.npy, are completed in
// bash.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "rewire/tools/io/option_text.h"

namespace rewire::tools {
namespace {

std::string Replaced(std::string text, char what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, 1, with);
  }
  return text;
}

// In single quotes, for each of the shells: a quote inside ends the text, and is written as such.
std::string Quoted(const std::string& text) { return "'" + Replaced(text, '\'', "'\\''") + "'"; }
std::string QuotedForFish(const std::string& text) {
  return "'" + Replaced(Replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

std::string FunctionName(const CLI::App& app) { return "_" + Replaced(app.get_name(), '-', "_"); }

std::vector<std::string> NamesOf(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Explanations are cut at their first sentence: shells show them on one line.
std::string Short(const std::string& help) {
  const std::size_t end = std::min(help.find("; "), help.find(". "));
  return help.substr(0, end);
}

// The value of an option as zsh's _arguments takes it: ":type:action".
std::string ZshValue(const OptionEntry& option) {
  const std::string type = Replaced(option.type, ':', "\\:");
  switch (option.value) {
    case OptionValue::kNone:
      return "";
    case OptionValue::kFile:
      return ":" + type + ":_files";
    case OptionValue::kChoice:
      return fmt::format(":value:({})", fmt::join(option.choices, " "));
    case OptionValue::kOther:
      return ":" + type + ": ";
  }
  return "";
}

std::string ZshArguments(const CommandEntry& command, const char* indent) {
  std::string text = std::string(indent) + "_arguments -s";
  for (const OptionEntry& option : command.options) {
    const std::string help = Replaced(Replaced(Short(option.help), '[', "\\["), ']', "\\]");
    for (const std::string& name : option.names) {
      text +=
          fmt::format(" \\\n{}  {}", indent, Quoted(fmt::format("*{}[{}]{}", name, help, ZshValue(option))));
    }
  }
  for (const OptionEntry& argument : command.arguments) {
    text += fmt::format(" \\\n{}  {}", indent, Quoted("*:" + argument.type + ":_files"));
  }
  return text + "\n";
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const std::vector<CommandEntry> commands = OptionTable(app);
  const std::string function = FunctionName(app);
  std::string text = fmt::format("# bash completion of {}\n{}() {{\n", app.get_name(), function);
  text +=
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options commands=\n";
  text += "  COMPREPLY=()\n  case ${COMP_WORDS[1]} in\n";
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    names.push_back(command.name);
    text += fmt::format("    {}) options={} ;;\n", command.name,
                        Quoted(fmt::format("{}", fmt::join(NamesOf(command), " "))));
  }
  text += fmt::format("    *) options={} commands={} ;;\n  esac\n",
                      Quoted(fmt::format("{}", fmt::join(NamesOf(commands.front()), " "))),
                      Quoted(fmt::format("{}", fmt::join(names, " "))));
  text += "  case $previous in\n";
  std::set<std::string> done;  // commands share options
  for (const CommandEntry& command : commands) {
    for (const OptionEntry& option : command.options) {
      const std::string cases = fmt::format("{}", fmt::join(option.names, "|"));
      if (!done.insert(cases).second) continue;
      if (option.value == OptionValue::kChoice) {
        text += fmt::format("    {}) mapfile -t COMPREPLY < <(compgen -W {} -- \"$current\"); return ;;\n",
                            cases, Quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      } else if (option.value == OptionValue::kOther) {
        text += fmt::format("    {}) return ;;\n", cases);
      }
    }
  }
  text +=
      "  esac\n"
      "  if [[ $current == *@* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -P \"${current%%@*}@\" -f -- \"${current#*@}\")\n"
      "  elif [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  elif [[ -n $commands && $COMP_CWORD == 1 ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n";
  return text + fmt::format("}}\ncomplete -o filenames -F {} {}\n", function, app.get_name());
}

std::string ZshCompletion(const CLI::App& app) {
  const std::vector<CommandEntry> commands = OptionTable(app);
  std::string text = fmt::format("#compdef {}\n# zsh completion of {}\n", app.get_name(), app.get_name());
  if (commands.size() == 1) return text + ZshArguments(commands.front(), "");
  text += "if (( CURRENT == 2 )); then\n  local -a commands=(\n";
  for (const CommandEntry& command : commands) {
    if (!command.name.empty())
      text += fmt::format("    {}\n", Quoted(command.name + ":" + Short(command.help)));
  }
  text += "  )\n  _describe command commands\n";
  text += ZshArguments(commands.front(), "  ") + "  return\nfi\ncase $words[2] in\n";
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    text += fmt::format("  {})\n    shift words; (( CURRENT-- ))\n{}    ;;\n", command.name,
                        ZshArguments(command, "    "));
  }
  return text + "esac\n";
}

std::string FishCompletion(const CLI::App& app) {
  std::string text = fmt::format("# fish completion of {}\n", app.get_name());
  const std::vector<CommandEntry> commands = OptionTable(app);
  for (const CommandEntry& command : commands) {
    std::string base = "complete -c " + app.get_name();
    if (!command.name.empty()) {
      text += fmt::format("{} -f -n __fish_use_subcommand -a {} -d {}\n", base, command.name,
                          QuotedForFish(Short(command.help)));
      base += " -n '__fish_seen_subcommand_from " + command.name + "'";
    } else if (commands.size() > 1) {
      base += " -n __fish_use_subcommand";
    }
    for (const OptionEntry& option : command.options) {
      text += base;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.value == OptionValue::kFile) text += " -r";
      if (option.value == OptionValue::kOther) text += " -x";
      if (option.value == OptionValue::kChoice) {
        text += " -x -a " + QuotedForFish(fmt::format("{}", fmt::join(option.choices, " ")));
      }
      text += " -d " + QuotedForFish(Short(option.help)) + "\n";
    }
  }
  return text;
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/option_text.h"

namespace rewire::tools {
namespace {

// As roff reads it back. A line that starts with a dot or a quote would be a request.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  if (!escaped.empty() && (escaped.front() == '.' || escaped.front() == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

// Indented lines are examples, and stay as they are. An empty line ends a paragraph.
std::string Paragraphs(const std::string& text) {
  std::string page;
  bool verbatim = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool example = line.starts_with(' ');
    if (example != verbatim && !line.empty()) {
      page += example ? ".PP\n.nf\n.RS 2\n" : ".RE\n.fi\n.PP\n";
      verbatim = example;
    } else if (line.empty() && !verbatim) {
      page += ".PP\n";
      continue;
    }
    page += Escaped(example ? line.substr(2 - (line.size() > 1 && line[1] == ' ' ? 0 : 1)) : line) + "\n";
  }
  return verbatim ? page + ".RE\n.fi\n" : page;
}

std::string Named(const OptionEntry& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + Escaped(name) + "\\fR");
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (!option.type.empty()) text += (text.empty() ? "" : " ") + ("\\fI" + Escaped(option.type) + "\\fR");
  return text;
}

std::string Options(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& argument : command.arguments) {
    text += fmt::format(".TP\n{}\n{}\n", Named(argument), Escaped(argument.help));
  }
  std::vector<std::string> groups;
  for (const OptionEntry& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    if (group != "Options") text += fmt::format(".SS \"{}\"\n", Escaped(group));
    for (const OptionEntry& option : command.options) {
      if (option.group == group) text += fmt::format(".TP\n{}\n{}\n", Named(option), Escaped(option.help));
    }
  }
  return text;
}

}  // namespace

std::string ManualPage(const CLI::App& app, const std::string& version) {
  const std::vector<CommandEntry> commands = OptionTable(app);
  const CommandEntry& tool = commands.front();
  std::string upper = app.get_name();
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const std::string summary = tool.help.substr(0, std::min(tool.help.find(".\n"), tool.help.find(". ")));
  std::string page = fmt::format(".TH {} 1 \"\" \"Rewire {}\" \"Rewire\"\n", upper, version);
  page += fmt::format(".SH NAME\n{} \\- {}\n", Escaped(app.get_name()), Escaped(summary));
  page += fmt::format(".SH SYNOPSIS\n.B {}\n", Escaped(app.get_name()));
  if (commands.size() > 1) page += ".I COMMAND\n";
  page += "[\\fIOPTION\\fR]...";
  for (const OptionEntry& argument : tool.arguments) page += " \\fI" + Escaped(argument.type) + "\\fR";
  page += "\n.SH DESCRIPTION\n" + Paragraphs(tool.help);
  page += ".SH OPTIONS\n" + Options(tool);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    page += fmt::format(".SH COMMAND {}\n{}\n{}", Escaped(commands[i].name), Escaped(commands[i].help),
                        Options(commands[i]));
  }
  page += ".SH EXIT STATUS\n.nf\n";
  std::istringstream codes(ExitCodeTable());
  std::string line;
  std::getline(codes, line);  // its heading
  while (std::getline(codes, line)) page += Escaped(line) + "\n";
  page += ".fi\n.SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set, nothing is colored.\n";
  page += ".TP\n.B REWIRE_LIBRARY_PATH\nWhere libraries of kernels and devices are searched first.\n";
  return page;
}

}  // namespace rewire::tools

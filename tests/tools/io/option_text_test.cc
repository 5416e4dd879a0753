// SPDX-License-Identifier: Apache-2.0
// Completion and manual pages of every tool: they have every option of --help, shells and groff read them
// without a complaint, and bash completes with them.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using Catch::Contains;

const std::vector<std::string>& Tools() {
  static const std::vector<std::string> kTools = {"vm-as",    "vm-bench", "vm-bundle",  "vm-convert",
                                                  "vm-debug", "vm-dis",   "vm-inspect", "vm-params",
                                                  "vm-run",   "vm-strip"};
  return kTools;
}

std::string Out(const std::string& tool, const std::vector<std::string>& arguments) {
  const test::TempFolder folder;
  const test::Finished finished = test::RunProgram(tool, arguments, folder.path());
  CHECK(finished.exit_code == 0);
  CHECK(finished.err == "");
  return finished.out;
}

// Tools with those that some builds lack.
std::vector<std::string> AllTools() {
  std::vector<std::string> tools = Tools();
  for (const char* tool : {"vm-aot", "vm-compile", "vm-serve"}) {
    if (std::filesystem::exists(std::filesystem::path(test::BuildDir()) / "bin" / tool))
      tools.emplace_back(tool);
  }
  return tools;
}

// --help of a tool and of its command with most options.
std::string HelpOf(const std::string& tool) {
  std::string help = Out(tool, {"--help"});
  if (tool == "vm-params") help += Out(tool, {"convert", "--help"});
  return help;
}

// The text that a shell command prints; its files are in the folder.
std::string Shell(const test::TempFolder& folder, const std::string& command) {
  const std::string all = "cd " + folder.path().string() + " && { " + command + "; } >shell.out 2>&1";
  CHECK(std::system(all.c_str()) == 0);
  return test::ReadWholeFile(folder.path() / "shell.out");
}
bool Has(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// The long names that a help text explains.
std::set<std::string> OptionsOf(const std::string& help) {
  static const std::regex kOption("(?:^|\n)  (?:-\\w,)?--([\\w-]+)");
  std::set<std::string> names;
  for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it)
    names.insert((*it)[1]);
  return names;
}

TEST_CASE("help says of each value what it is, by a name that means something") {
  // The names that CLI11 gives to the value of an option that has none.
  static const std::regex kUnnamed("(?:TEXT|INT|UINT|FLOAT|ENUM|BOOLEAN)");
  for (const std::string& tool : AllTools()) {
    INFO(tool);
    const std::string help = HelpOf(tool);
    static const std::regex kOption("\n  (?:-\\w,)?--[\\w-]+ ([^ \n]+)[^\n]*");
    for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it) {
      INFO(it->str());
      CHECK(!std::regex_match(it->str(1), kUnnamed));
      CHECK(it->str().find("Excludes:") == std::string::npos);
    }
  }
}

// bash lists the options whose values it does not complete. None of them may take a file, so their values are
// of kinds that are known here: another kind must be added, or completed as files.
TEST_CASE("files are completed for every option that takes one") {
  static const std::regex kNoFile(
      "(?:ADDRESS|BYTES|DTYPE=LOW:HIGH|FUNCTION|N|NAME|NAME=SIZE|OUTPUT=INPUT|PASS|PID|R|SECONDS|SIZE|TIME|"
      "US|X)(?:=.*)?");
  static const std::regex kNotCompleted("\n    ([^\n]*)\\) return ;;");
  std::size_t files = 0;
  for (const std::string& tool : AllTools()) {
    const std::string bash = Out(tool, {"--generate", "bash"});
    std::set<std::string> not_completed;
    for (std::sregex_iterator it(bash.begin(), bash.end(), kNotCompleted), end; it != end; ++it) {
      const std::string names = (*it)[1];
      not_completed.insert(names.substr(names.rfind('|') + 1));
    }
    const std::string help = HelpOf(tool);
    static const std::regex kOption("\n  (?:-\\w,)?(--[\\w-]+) ([A-Za-z][^ \n]*)");
    for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it) {
      INFO(tool << it->str());
      if (not_completed.count((*it)[1]) != 0) {
        CHECK(std::regex_match(it->str(2), kNoFile));
      } else if (it->str(2).find("FILE") != std::string::npos) {
        ++files;
      }
    }
  }
  CHECK(files >= 20);
}

TEST_CASE("completion and manual pages have every option of --help") {
  for (const std::string& tool : Tools()) {
    std::set<std::string> options = OptionsOf(Out(tool, {"--help"}));
    if (tool == "vm-params") options.merge(OptionsOf(Out(tool, {"convert", "--help"})));
    CHECK(options.size() >= 3);
    const std::string bash = Out(tool, {"--generate", "bash"});
    const std::string zsh = Out(tool, {"--generate", "zsh"});
    const std::string fish = Out(tool, {"--generate", "fish"});
    const std::string page = Out(tool, {"--generate", "man"});
    for (const std::string& option : options) {
      INFO(tool << " --" << option);
      CHECK_THAT(bash, Contains("--" + option));
      CHECK_THAT(zsh, Contains("*--" + option + "["));
      CHECK_THAT(fish, Contains("-l " + option + " "));
      CHECK_THAT(page, Contains("\\-\\-" + std::regex_replace(option, std::regex("-"), "\\-")));
    }
  }
}

TEST_CASE("shells and groff read what is generated") {
  const test::TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> readers = {
      {"bash", "bash -n file"},
      {"zsh", "zsh -n file"},
      {"fish", "fish -n file"},
      {"man", "groff -man -Tascii -ww -z file"}};
  for (const std::string& tool : Tools()) {
    for (const auto& [form, reader] : readers) {
      if (!Has(reader.substr(0, reader.find(' ')))) continue;
      folder.Write("file", Out(tool, {"--generate", form}));
      INFO(tool << " " << form);
      CHECK(Shell(folder, reader) == "");
    }
  }
  const test::Finished wrong = test::RunProgram("vm-run", {"--generate", "bahs"}, folder.path());
  CHECK(wrong.err ==
        "vm-run: error: --generate: 'bahs' is none of bash, zsh, fish and man; did you mean 'bash'?\n");
  CHECK(wrong.exit_code == 11);
}

TEST_CASE("bash completes options, commands, choices and files behind @") {
  const test::TempFolder folder;
  for (const std::string& tool : Tools()) folder.Write(tool, Out(tool, {"--generate", "bash"}));
  folder.Write("one two.npy", "");
  const auto completed = [&](const std::string& tool, const std::string& words) {
    std::string function = "_" + tool;
    for (char& c : function) c = c == '-' ? '_' : c;
    folder.Write("try", "source ./" + tool + "\nCOMP_WORDS=(" + tool + " " + words +
                            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n" + function +
                            "\nprintf '%s|' \"${COMPREPLY[@]}\"");
    return Shell(folder, "bash ./try");
  };
  CHECK(completed("vm-run", "--exp") == "--explain-outputs|--expect|");
  CHECK(completed("vm-run", "-i x=@one") == "x=@one two.npy|");
  CHECK(completed("vm-run", "one") == "one two.npy|");
  CHECK(completed("vm-run", "--threads o") == "|");
  CHECK(completed("vm-params", "con") == "convert|");
  CHECK(completed("vm-params", "list --o") == "|");
  CHECK(completed("vm-params", "convert --o") == "--output|");
  if (!std::filesystem::exists(std::string(test::BuildDir()) + "/bin/vm-compile")) return;
  folder.Write("vm-compile", Out("vm-compile", {"--generate", "bash"}));
  CHECK(completed("vm-compile", "--precision in") == "int8|");
}

}  // namespace
}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
// A wrong value of an option: one line with the option, what it expects and what is given. The options are
// those that --help of every tool lists, so none is forgotten.
#include "rewire/tools/options/option_types.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>

#include <regex>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using test::Finished;

TEST_CASE("whole numbers are decimal and in their range") {
  CHECK(*ParseWholeNumber("010", 1, 4096) == 10);
  CHECK(*ParseWholeNumber("18446744073709551615", 0, UINT64_MAX) == UINT64_MAX);
  const auto message = [](const char* text, std::uint64_t least, std::uint64_t most) {
    return ParseWholeNumber(text, least, most).error().message();
  };
  CHECK(message("many", 1, UINT32_MAX) == "expected a whole number of at least 1, given 'many'");
  CHECK(message("0", 1, 4096) == "expected a whole number from 1 to 4096, given '0'");
  CHECK(message("4294967296", 0, UINT32_MAX) ==
        "expected a whole number from 0 to 4294967295, given '4294967296'");
  for (const char* wrong : {"", "-1", "1.5", "0x10", " 1", "1 ", "18446744073709551616"}) {
    INFO(wrong);
    CHECK_FALSE(ParseWholeNumber(wrong, 0, UINT64_MAX).has_value());
  }
}

TEST_CASE("numbers may be infinite where no limit is set") {
  CHECK(*ParseRealNumber("1e-5", 0, INFINITY) == 1e-5);
  CHECK(*ParseRealNumber("inf", 0, INFINITY) == INFINITY);
  CHECK(ParseRealNumber("-1", 0, INFINITY).error().message() ==
        "expected a number of at least 0, given '-1'");
  CHECK(ParseRealNumber("0", 0.001, 10).error().message() == "expected a number from 0.001 to 10, given '0'");
  CHECK_FALSE(ParseRealNumber("nan", 0, INFINITY).has_value());
}

struct Option {
  std::string tool, name, type;
};

// The options with a number, a size, a time or a choice, of the tools that are built.
std::vector<Option> Options() {
  static const std::regex kOption(
      "\n  (?:-\\w,)?--([\\w-]+) (N|X|US|SECONDS|SIZE|TIME|PID|\\w+:\\{[^}]*\\})(?=[ =\n])");
  std::vector<Option> options;
  const test::TempFolder folder;
  for (const char* tool : {"vm-aot", "vm-as", "vm-bench", "vm-bundle", "vm-compile", "vm-convert", "vm-debug",
                           "vm-dis", "vm-inspect", "vm-params", "vm-run", "vm-serve", "vm-strip"}) {
    if (!std::filesystem::exists(std::filesystem::path(test::BuildDir()) / "bin" / tool)) continue;
    std::vector<std::string> arguments = {"--help"};
    if (std::string(tool) == "vm-params") arguments.insert(arguments.begin(), "convert");
    const std::string help = test::RunProgram(tool, arguments, folder.path()).out;
    for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it)
      options.push_back({tool, (*it)[1], (*it)[2]});
  }
  return options;
}

TEST_CASE("a wrong value of each option is told in one line that names the option") {
  const std::vector<Option> options = Options();
  CHECK(options.size() >= 15);
  const test::TempFolder folder;
  for (const Option& option : options) {
    std::vector<std::string> arguments = {"--" + option.name, "~5X"};
    if (option.tool == "vm-params") arguments.insert(arguments.begin(), "convert");
    const Finished finished = test::RunProgram(option.tool, arguments, folder.path());
    INFO(option.tool << " --" << option.name << " " << option.type << ": " << finished.err);
    CHECK(finished.exit_code == 11);
    CHECK(finished.out.empty());
    CHECK(finished.err.find(option.tool + ": error: --" + option.name + ": ") == 0);
    CHECK(finished.err.find("'~5X'") != std::string::npos);
    CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
    for (const char* foreign : {"::", "not in range", "Could not convert", "fault of this program"})
      CHECK(finished.err.find(foreign) == std::string::npos);
    // It says what would be right.
    const bool expects = finished.err.find("expected ") != std::string::npos;
    CHECK((expects || finished.err.find("; the choices: ") != std::string::npos));
  }
}

TEST_CASE("a choice that is nearly right is suggested") {
  CLI::App app("", "tool");
  std::string how = "model";
  AddChoice(&app, "--precision", &how, "HOW", {"model", "int8", "bf16"}, "");
  std::string message;
  try {
    app.parse("--precision int4");
  } catch (const CLI::ParseError& error) {
    message = error.what();
  }
  CHECK(message ==
        "--precision: there is no choice 'int4'; did you mean 'int8'? The choices: model, int8, bf16");
}

}  // namespace
}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/cli.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/near_names.h"

namespace rewire::tools {
namespace {

int Finish(const CLI::App& app, int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  const std::string reason = errno == 0 ? "write error" : std::strerror(errno);
  return ReportError(app.get_name(), Error(StatusCode::kIo, "cannot write standard output: " + reason));
}

// What CLI11 says, and for an option that does not exist the nearest one that does.
std::string UsageMessage(const CLI::App& app, const CLI::ParseError& wrong) {
  const std::string help = "; " + app.get_name() + " --help lists the options";
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return wrong.what() + help;
  const std::string given = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back("--" + option->get_single_name());
  const std::string suggestion = DidYouMean(given, known);
  return fmt::format("unexpected argument '{}'{}", given, suggestion.empty() ? help : suggestion);
}

}  // namespace

std::string ExitCodeTable() {
  std::string table = "Exit codes:\n   0  success\n   1  outputs differ, or a check failed\n";
  for (int code = 1; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    const StatusCode status = static_cast<StatusCode>(code);
    table += fmt::format("  {}  {}\n", ExitCode(status), StatusCodeName(status));
  }
  return table;
}

int ReportError(const std::string& tool, const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: error: {}\n", tool, error.message());
  return ExitCode(error.code());
}

int Main(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  app.set_version_flag("--version", app.get_name() + " (Rewire) " REWIRE_VERSION);
  app.footer(ExitCodeTable());
  app.get_formatter()->column_width(34);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return Finish(app, 0);
  } catch (const CLI::ParseError& wrong) {
    return ReportError(app.get_name(), Error(StatusCode::kInvalidArgument, UsageMessage(app, wrong)));
  }
  const Result<int> exit_code = run();
  if (!exit_code) return ReportError(app.get_name(), exit_code.error());
  return Finish(app, *exit_code);
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "rewire/base/near_names.h"
#include "rewire/base/touched_files.h"
#include "rewire/tools/io/interrupt.h"
#include "rewire/tools/io/log.h"
#include "rewire/tools/io/option_text.h"
#include "rewire/tools/io/style.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

// Set by the one command that a process runs.
bool wants_json = false;
bool printed_json = false;

// The exit code where the reader has enough, as `head` has, which is no error: that of SIGPIPE.
constexpr int kNobodyReads = 128 + SIGPIPE;

// A tool may end with the error of what it could not print.
int Failed(const std::string& tool, const Error& error) {
  struct pollfd output = {STDOUT_FILENO, 0, 0};
  const bool unread = std::ferror(stdout) != 0 && poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
  return unread && error.code() == StatusCode::kIo ? kNobodyReads : ReportError(tool, error);
}

int CannotPrint(const CLI::App& app, int error) {
  if (error == EPIPE) return kNobodyReads;
  const std::string reason = error == 0 ? "write error" : std::strerror(error);
  return ReportError(app.get_name(), Error(StatusCode::kIo, "cannot write standard output: " + reason));
}

int Finish(const CLI::App& app, int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return CannotPrint(app, errno);
}

// The options that could have stood in place of one, of the tool and of the command given.
std::vector<std::string> KnownOptions(const CLI::App& app) {
  std::vector<std::string> known;
  std::vector<const CLI::App*> parts = {&app};
  for (const CLI::App* command : app.get_subcommands()) parts.push_back(command);
  for (const CLI::App* part : parts) {
    for (const CLI::Option* option : part->get_options()) known.push_back("--" + option->get_single_name());
  }
  return known;
}

// The words of CLI11, and for an option or a command that does not exist the nearest one that does.
std::string UsageMessage(const CLI::App& app, const CLI::ParseError& wrong) {
  // A wrong value says itself what is expected.
  if (dynamic_cast<const CLI::ValidationError*>(&wrong) != nullptr) return wrong.what();
  const std::string help = "; " + app.get_name() + " --help lists the options";
  const std::vector<std::string> extras = app.remaining(true);
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  const bool has_command = commands.empty() || !app.get_subcommands().empty();
  if (extras.empty() || extras.front().empty()) {
    return has_command ? wrong.what() + help : "a command is required" + KnownNames("commands", "", commands);
  }
  std::string given = extras.front().substr(0, extras.front().find('='));
  if (given.empty()) given = extras.front();
  if (!has_command && given.front() != '-')
    return fmt::format("there is no command '{}'{}", given, KnownNames("commands", given, commands));
  const std::string suggestion = given.front() == '-' ? DidYouMean(given, KnownOptions(app)) : "";
  return fmt::format("unexpected argument '{}'{}", given, suggestion.empty() ? help : suggestion);
}

// A descriptor that is closed would be the next file opened, and what is printed would go into it.
void PrepareProcess() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // Opened for the other direction, so that using it is still an error. The lowest that is free is taken.
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
  // A pipe that nobody reads ends the tool where it prints, behind which no unfinished file is left.
  std::signal(SIGPIPE, SIG_IGN);
  RememberTouchedFiles();
}

// Whether --json is given, to the tool or to its command. A command line that is wrong elsewhere counts too.
bool WantsJson(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

// Generates what the build installs beside a tool. It is asked for by --generate, which people need not know.
Result<int> Generate(const CLI::App& app, const std::string& form) {
  const std::vector<std::string> forms = {"bash", "zsh", "fish", "man"};
  std::string text;
  if (form == "bash") {
    text = BashCompletion(app);
  } else if (form == "zsh") {
    text = ZshCompletion(app);
  } else if (form == "fish") {
    text = FishCompletion(app);
  } else if (form == "man") {
    text = ManualPage(app, REWIRE_VERSION);
  } else {
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("--generate: '{}' is none of bash, zsh, fish and man{}", form, DidYouMean(form, forms)));
  }
  fmt::print("{}", text);
  return 0;
}

// The first entry of a log: what was called, in words that a shell would take again.
void LogCommand(int argc, char** argv) {
  std::string command = "Rewire " REWIRE_VERSION ":";
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?`#~") == std::string_view::npos;
    command += plain ? fmt::format(" {}", word) : fmt::format(" '{}'", word);
  }
  Log(LogLevel::kInfo, command);
}

// Says of an option's value what it is and what it is by default. Which options go with which, their texts
// and the errors say: a list of names beside each option would break the table.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text;
    if (const std::string type = option->get_type_name(); !type.empty()) text += " " + type;
    if (const std::string value = option->get_default_str(); !value.empty()) text += "=" + value;
    if (option->get_expected_max() > 1) text += " ...";
    if (option->get_required() && !option->get_positional()) text += " (required)";
    return text;
  }
};

int ParseAndRun(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  app.set_version_flag("--version", app.get_name() + " (Rewire) " REWIRE_VERSION);
  AddLogOptions(&app);
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  app.formatter(formatter);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->fallthrough();
    command->formatter(formatter);
  }
  app.footer(ExitCodeTable());
  if (argc == 3 && std::strcmp(argv[1], "--generate") == 0) {
    const Result<int> generated = Generate(app, argv[2]);
    return generated ? Finish(app, *generated) : ReportError(app.get_name(), generated.error());
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {  // --help, --version
    app.exit(answer);
    return Finish(app, 0);
  } catch (const CLI::ParseError& wrong) {
    return ReportError(app.get_name(), Error(StatusCode::kInvalidArgument, UsageMessage(app, wrong)));
  }
  if (Status started = StartLog(app.get_name()); !started)
    return ReportError(app.get_name(), started.error());
  LogCommand(argc, argv);
  const auto start = std::chrono::steady_clock::now();
  const Result<int> exit_code = run();
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
  struct rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  Detail(fmt::format("took {}, at most {} of memory", DurationText(static_cast<double>(taken.count())),
                     BytesText(static_cast<std::uint64_t>(used.ru_maxrss) * 1024)));
  int code = exit_code ? Finish(app, *exit_code) : Failed(app.get_name(), exit_code.error());
  Log(LogLevel::kInfo, fmt::format("exit code {}", code));
  if (Status logged = FinishLog(); !logged && code == 0) code = ReportError(app.get_name(), logged.error());
  if (!exit_code && exit_code.error().code() == StatusCode::kCancelled) EndIfInterrupted();
  return code;
}

}  // namespace

CLI::Validator OneOf(const std::vector<std::string>& choices) {
  const auto check = [choices](const std::string& given) -> std::string {
    if (std::find(choices.begin(), choices.end(), given) != choices.end()) return {};
    return fmt::format("there is no choice '{}'{}", given,
                       KnownNames("choices", given, {choices.data(), choices.size()}));
  };
  return CLI::Validator(check, fmt::format("{{{}}}", fmt::join(choices, ",")));
}

std::string InOptions(std::string message) {
  struct Row {
    std::string_view setting, option;
  };
  static constexpr Row kRows[] = {
      {"within the VM's byte limit", "within --max-bytes; raise it if the program needs more"},
      {"the deadline passed", "the time of --deadline is over; raise it if the program needs more"},
      {"Limits::bytes", "--max-bytes"},
      {"Limits::depth", "--max-depth"},
      {"Limits::steps", "--max-steps"},
      {"LinkOptions::trust_device_code (--trust-device-code)", "--trust-device-code"},
      {"--max-work (CompileLimits::work)", "--max-work"},
      {"--max-fold-bytes (CompileLimits::fold_bytes)", "--max-fold-bytes"},
      {"--allow-external (CompileOptions::external_folders)", "--allow-external"},
      {"CompileOptions::check_passes", "--check-passes"},
      {"LIBRARY.so of --kernels, CompileOptions::operators", "LIBRARY.so of --kernels"},
  };
  for (const Row& row : kRows) {
    const std::size_t at = message.find(row.setting);
    const bool is_whole = at != std::string::npos && (at == 0 || std::isalnum(message[at - 1]) == 0);
    if (is_whole) message.replace(at, row.setting.size(), row.option);
  }
  return message;
}

std::string ExitCodeTable() {
  std::string table = "Exit codes:\n   0  success\n   1  outputs differ, or a check failed\n";
  for (int code = 1; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    const StatusCode status = static_cast<StatusCode>(code);
    table += fmt::format("  {}  {}\n", ExitCode(status), StatusCodeName(status));
  }
  return table + "  130  ended by Ctrl-C; 128 plus the number of another signal\n";
}

int ReportError(const std::string& tool, const Error& given) {
  const Error error(given.code(), InOptions(given.message()));
  if (wants_json && !printed_json) {
    try {
      PrintJson({{"error", ErrorJson(error)}});
    } catch (const std::exception&) {
      // Standard output cannot be written. The line below and the exit code are left.
    }
  }
  std::fflush(stdout);
  const std::string line =
      fmt::format("{}: {} {}\n", tool, Inked("error:", Ink::kRed, WantsColor(stderr)), error.message());
  std::fwrite(line.data(), 1, line.size(), stderr);  // when it is closed, the exit code is all there is
  Log(LogLevel::kError, error.message());
  return ExitCode(error.code());
}

void Tell(const std::string& text) {
  if (!IsQuiet()) fmt::print("{}", text);
  Log(LogLevel::kInfo, text);
}
void Detail(const std::string& line) { Log(LogLevel::kDebug, line); }

nlohmann::ordered_json ErrorJson(const Error& error) {
  return {{"code", static_cast<int>(error.code())},
          {"name", StatusCodeName(error.code())},
          {"message", InOptions(error.message())}};
}

void PrintJson(const nlohmann::ordered_json& json) {
  printed_json = true;
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int Main(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  PrepareProcess();
  wants_json = WantsJson(argc, argv);
  const std::string name = app.get_name();
  EndOnInterrupt(name.c_str(), wants_json);
  try {
    return ParseAndRun(app, argc, argv, run);
  } catch (const std::bad_alloc&) {
    return ReportError(app.get_name(), Error(StatusCode::kOutOfMemory, "there is not enough memory"));
  } catch (const std::length_error&) {
    return ReportError(app.get_name(),
                       Error(StatusCode::kOutOfMemory, "more memory is asked for than there can be"));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return CannotPrint(app, error.code().value());  // thrown by fmt
    return ReportError(app.get_name(), Error(StatusCode::kIo, error.code().message()));
  } catch (const std::exception& error) {
    return ReportError(app.get_name(), Error(StatusCode::kInternal, std::string("a fault of this program: ") +
                                                                        error.what() + "; please report it"));
  } catch (...) {
    return ReportError(app.get_name(),
                       Error(StatusCode::kInternal, "a fault of this program; please report it"));
  }
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/style.h"
#include "rewire/vm/log_to_spdlog.h"

namespace rewire::tools {
namespace {

const std::map<std::string, spdlog::level::level_enum> kLevels = {{"off", spdlog::level::off},
                                                                  {"error", spdlog::level::err},
                                                                  {"info", spdlog::level::info},
                                                                  {"debug", spdlog::level::debug}};
constexpr char kPattern[] = "[%Y-%m-%d %H:%M:%S.%e] [%n %P] [%l] %v";

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::off;
}

// The choices of the one command that a process runs.
struct Choices {
  bool quiet = false;
  bool verbose = false;
  std::string level;
  std::string file;
};
Choices choices;
std::shared_ptr<spdlog::logger> logger;
spdlog::sink_ptr log_sink;  // of --log-level and --log-file, or of KeepLogOpen; null: there is no log
std::mutex failure_mutex;
std::string failure;

// Shows the text alone, for --verbose. Errors are printed in any case (ReportError), and so is what a tool
// has written, unless it is --quiet.
class VerboseSink : public spdlog::sinks::stderr_sink_mt {
 public:
  VerboseSink() {
    const bool colored = WantsColor(stderr);
    set_pattern(Inked("%v", Ink::kDim, colored));
  }
  void log(const spdlog::details::log_msg& message) override {
    if (message.level == spdlog::level::debug) spdlog::sinks::stderr_sink_mt::log(message);
  }
};

Status CheckLogFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::ifstream file(path, std::ios::binary);
  if (const int first = file.get(); first == '[' || !file) return {};
  return Fail(StatusCode::kInvalidArgument, "--log-file: '{}' exists and is no log; name another file", path);
}

void MakeLogger(const std::string& tool, const std::vector<spdlog::sink_ptr>& sinks,
                spdlog::level::level_enum level) {
  logger = std::make_shared<spdlog::logger>(tool, sinks.begin(), sinks.end());
  logger->set_level(level);
  logger->flush_on(spdlog::level::debug);  // whatever ends the process, the log has what was before
  logger->set_error_handler([](const std::string& message) {
    const std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure.empty()) failure = message;
  });
}

}  // namespace

void AddLogOptions(CLI::App* app) {
  app->add_flag("-q,--quiet", choices.quiet, "print results and errors alone");
  CLI::Option* verbose = app->add_flag("-v,--verbose", choices.verbose,
                                       "say on standard error what is done, and how long it takes");
  verbose->excludes("--quiet");
  std::vector<std::string> names;
  names.reserve(kLevels.size());
  for (const auto& [name, level] : kLevels) names.push_back(name);
  app->add_option("--log-level", choices.level,
                  "log with times: errors, info (the command and what it wrote) or debug (all of --verbose)")
      ->type_name("LEVEL")
      ->check(OneOf(names));
  app->add_option("--log-file", choices.file,
                  "append the log to this file instead of standard error; the level is then info by default")
      ->type_name("FILE");
}

Status StartLog(const std::string& tool) {
  std::vector<spdlog::sink_ptr> sinks;
  if (choices.verbose) sinks.push_back(std::make_shared<VerboseSink>());
  const spdlog::level::level_enum level = kLevels.at(!choices.level.empty() ? choices.level
                                                     : choices.file.empty() ? "off"
                                                                            : "info");
  if (!choices.file.empty()) {
    if (Status ok = CheckLogFile(choices.file); !ok) return ok;
  }
  if (level != spdlog::level::off) {
    spdlog::sink_ptr sink;
    if (choices.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      try {
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(choices.file);
      } catch (const spdlog::spdlog_ex& error) {
        return Fail(StatusCode::kIo, "--log-file: {}", std::string(error.what()));
      }
    }
    sink->set_pattern(kPattern);
    sink->set_level(level);
    log_sink = sink;
    sinks.push_back(std::move(sink));
  }
  if (!sinks.empty()) MakeLogger(tool, sinks, choices.verbose ? spdlog::level::debug : level);
  return {};
}

void KeepLogOpen(const std::string& tool) {
  if (log_sink != nullptr) return;
  log_sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  log_sink->set_pattern(kPattern);
  log_sink->set_level(spdlog::level::off);
  std::vector<spdlog::sink_ptr> sinks = {log_sink};
  if (logger != nullptr) sinks.insert(sinks.end(), logger->sinks().begin(), logger->sinks().end());
  MakeLogger(tool, sinks, choices.verbose ? spdlog::level::debug : spdlog::level::off);
}

void SetLogLevel(std::optional<LogLevel> level) {
  if (log_sink == nullptr) return;
  const spdlog::level::level_enum wanted = level ? LevelOf(*level) : spdlog::level::off;
  log_sink->set_level(wanted);
  logger->set_level(choices.verbose ? spdlog::level::debug : wanted);
}

std::optional<LogLevel> CurrentLogLevel() {
  if (log_sink == nullptr) return std::nullopt;
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kError}) {
    if (log_sink->should_log(LevelOf(level))) return level;
  }
  return std::nullopt;
}

void Log(LogLevel level, std::string_view text) {
  if (logger == nullptr || !logger->should_log(LevelOf(level))) return;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    logger->log(LevelOf(level), spdlog::string_view_t(line.data(), line.size()));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
  }
}

LogSink ProgramLog() { return logger == nullptr ? LogSink() : LogToSpdlog<spdlog::level::debug>(*logger); }

Status FinishLog() {
  const std::lock_guard<std::mutex> lock(failure_mutex);
  if (failure.empty()) return {};
  return Fail(StatusCode::kIo, "the log cannot be written: {}", failure);
}

bool IsQuiet() { return choices.quiet; }
bool IsVerbose() { return choices.verbose; }

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/server_log.h"

#include <optional>
#include <string>

namespace rewire::serve {
namespace {

// LogChanges: the flags that a client has set.
struct LogChanges {
  std::optional<bool> error, warning, info;
  std::optional<std::int64_t> verbose;
};

Status ReadLogChange(const Parameter& change, LogChanges* changes) {
  const auto wrong = [&](const char* expected) {
    return Fail(StatusCode::kInvalidArgument, "the log setting '{}' must be {}", change.name, expected);
  };
  for (const auto& [name, flag] :
       {std::pair("log_error", &changes->error), std::pair("log_warning", &changes->warning),
        std::pair("log_info", &changes->info)}) {
    if (change.name != name) continue;
    const bool* const value = std::get_if<bool>(&change.value);
    if (value == nullptr) return wrong("true or false");
    *flag = *value;
    return {};
  }
  if (change.name == "log_verbose_level") {
    const auto* const value = std::get_if<std::int64_t>(&change.value);
    if (value == nullptr || *value < 0) return wrong("a whole number from 0");
    changes->verbose = *value;
    return {};
  }
  const auto* const text = std::get_if<std::string_view>(&change.value);
  if (change.name == "log_file") {
    if (text != nullptr && text->empty()) return {};
    return Fail(StatusCode::kUnsupported,
                "the log setting 'log_file' cannot be changed by clients: start the server with --log-file");
  }
  if (change.name == "log_format") {
    if (text != nullptr && *text == "default") return {};
    return Fail(StatusCode::kUnsupported, "the log setting 'log_format' has one value here, 'default'");
  }
  return Fail(StatusCode::kInvalidArgument,
              "there is no log setting '{}'; there are log_error, log_warning, log_info, log_verbose_level",
              change.name);
}

}  // namespace

LogSettings SettingsOfLog(const ServerLog& log) {
  const ServerLogLevel level = log.level();
  const bool error = level >= ServerLogLevel::kError;
  return {error, error, level >= ServerLogLevel::kInfo, level >= ServerLogLevel::kDebug ? 1U : 0U};
}

Status ChangeLog(Span<const Parameter> changes, ServerLog* log) {
  if (log == nullptr) return Fail(StatusCode::kUnsupported, "this server has no log");
  LogChanges wanted;
  for (const Parameter& change : changes) {
    if (Status read = ReadLogChange(change, &wanted); !read) return read;
  }
  const LogSettings now = SettingsOfLog(*log);
  const bool verbose = wanted.verbose ? *wanted.verbose > 0 : now.verbose > 0;
  const bool info = wanted.info.value_or(now.info || wanted.verbose.value_or(0) > 0);
  const bool above = wanted.info.value_or(false) || wanted.verbose.value_or(0) > 0;
  const bool error = wanted.error.value_or(now.error || above || wanted.warning.value_or(false));
  const bool warning = wanted.warning.value_or(now.warning || above || wanted.error.value_or(false));
  if (error != warning || (info && !error) || (verbose && !info)) {
    return Fail(StatusCode::kUnsupported,
                "the log has levels: log_error and log_warning are one, log_info includes it, and "
                "log_verbose_level 1 includes both; turn off those above as well");
  }
  log->SetLevel(verbose ? ServerLogLevel::kDebug
                : info  ? ServerLogLevel::kInfo
                : error ? ServerLogLevel::kError
                        : ServerLogLevel::kOff);
  return {};
}

}  // namespace rewire::serve

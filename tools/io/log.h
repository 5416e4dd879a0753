// SPDX-License-Identifier: Apache-2.0
//
// Tools tell more than their results: to people on standard error (--verbose), and to a log (--log-level,
// --log-file). Both are sinks of one logger of spdlog, and so is what librewire logs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/vm/program.h"

namespace rewire::tools {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kError };

// Adds the options --quiet, --verbose, --log-level and --log-file to a tool.
void AddLogOptions(CLI::App* app);

// Starts what the options ask for, once they are parsed. A log file is appended to. It must be new, empty or
// a log, so that no model is damaged by a mistaken name; otherwise kInvalidArgument. kIo if it cannot be
// opened.
Status StartLog(const std::string& tool);

// Does nothing if nobody listens at this level. Of several lines, each becomes an entry. Thread-safe.
void Log(LogLevel level, std::string_view text);
// The same for what a program logs, at kDebug.
LogSink ProgramLog();

// For tools that run on: SetLogLevel sets the log's level while threads log. Without --log-level and
// --log-file, the log goes to standard error, and is off until then. Call it after StartLog, before threads.
void KeepLogOpen(const std::string& tool);
void SetLogLevel(std::optional<LogLevel> level);  // none: nothing is logged
std::optional<LogLevel> CurrentLogLevel();

// The log's file or standard error could not be written; OK if everything was.
Status FinishLog();

bool IsQuiet();
bool IsVerbose();

}  // namespace rewire::tools

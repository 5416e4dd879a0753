// SPDX-License-Identifier: Apache-2.0
//
// All command line tools share this: error messages, exit codes and --version.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/status.h"

namespace rewire::tools {

// Exit codes: 0 for success; 1 if the tool worked and the answer is no (outputs differ, a check failed); 10
// plus the StatusCode for an error.
inline constexpr int kExitNo = 1;
constexpr int ExitCode(StatusCode code) { return code == StatusCode::kOk ? 0 : 10 + static_cast<int>(code); }
// The table of exit codes for --help, one line per code.
std::string ExitCodeTable();

// A message of the library, with options in place of the settings of the C++ interface that it names.
std::string InOptions(std::string message);

// The check of an option that takes one of these words. It suggests and lists them.
CLI::Validator OneOf(const std::vector<std::string>& choices);

// Prints "<tool>: error: <message>" on stderr and returns the exit code. If the command line has --json and
// nothing was printed by PrintJson, also prints {"error": ...} on stdout.
int ReportError(const std::string& tool, const Error& error);

// With --quiet, Tell prints nothing: it is for what people know already, such as "wrote x.npy". Detail prints
// a line on stderr, with --verbose. The log has both (log.h).
void Tell(const std::string& text);
void Detail(const std::string& line);

// {"code": 2, "name": "not found", "message": "..."}.
nlohmann::ordered_json ErrorJson(const Error& error);
// Prints a tool's answer to --json. Bytes that are no UTF-8 are replaced.
void PrintJson(const nlohmann::ordered_json& json);

// The main function of a tool: parses the command line, answers --help and --version, runs, and reports
// errors.
//
// `--generate bash`, `zsh`, `fish` or `man` prints completion for a shell, or the manual page
// (option_text.h).
//
// A wrong command line is kInvalidArgument. If standard output cannot be written (a full disk), that is
// kIo. If nobody reads it any more, as behind `| head`, that is no error, and the exit code is 128 plus
// SIGPIPE. Exceptions are reported like other errors: kOutOfMemory if memory is missing, kIo from
// the operating system, otherwise kInternal. Ctrl-C is handled as interrupt.h says. No file that the tool has
// read is overwritten (base/touched_files.h).
int Main(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run);

}  // namespace rewire::tools

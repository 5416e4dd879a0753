// SPDX-License-Identifier: Apache-2.0
// What all command line tools have in common: how they report errors, their exit codes, their --version.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/status.h"

namespace rewire::tools {

// Exit codes: 0 success; 1 the tool did its work and the answer is no (outputs differ, a check failed);
// 10 plus the StatusCode for an error.
inline constexpr int kExitNo = 1;
constexpr int ExitCode(StatusCode code) { return code == StatusCode::kOk ? 0 : 10 + static_cast<int>(code); }
// The table for --help, a line for each code.
std::string ExitCodeTable();

// Prints "<tool>: error: <message>" on stderr and returns the exit code.
int ReportError(const std::string& tool, const Error& error);

// The main of a tool: parses, answers --help and --version, runs, reports. A wrong command line is
// kInvalidArgument. Standard output that cannot be written (a full disk, a closed pipe) is kIo.
int Main(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run);

}  // namespace rewire::tools

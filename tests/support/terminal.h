// SPDX-License-Identifier: Apache-2.0
// Runs programs of the build tree at a terminal, as somebody would type.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace rewire::test {

struct TerminalSession {
  int exit_code = 0;   // 128 + the signal's number when one ended the program
  std::string screen;  // what the program has written, with the keys that the terminal shows
};

// Each step waits for its first text on the screen, behind those of earlier steps, then types the second.
// HOME is `folder`, and the terminal is an xterm with UTF-8. A program that runs longer than two minutes is
// ended by SIGALRM.
TerminalSession RunAtTerminal(const std::string& program, const std::vector<std::string>& arguments,
                              const std::filesystem::path& folder,
                              const std::vector<std::pair<std::string, std::string>>& steps,
                              const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace rewire::test

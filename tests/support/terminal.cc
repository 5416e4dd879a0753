// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/support/terminal.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

constexpr unsigned kSessionSeconds = 120;
const std::string kNever(1, '\0');  // no program prints it

// Reads until `screen` has `wanted` after position `from`, or the program's end. Returns where it stands.
std::size_t ReadUntil(int terminal, const std::string& wanted, std::size_t from, std::string* screen) {
  for (;;) {
    const std::size_t found = screen->find(wanted, from);
    if (found != std::string::npos) return found + wanted.size();
    char buffer[4096];
    const ssize_t size = read(terminal, buffer, sizeof(buffer));
    if (size <= 0) return screen->size();
    screen->append(buffer, static_cast<std::size_t>(size));
  }
}

}  // namespace

TerminalSession RunAtTerminal(const std::string& program, const std::vector<std::string>& arguments,
                              const std::filesystem::path& folder,
                              const std::vector<std::pair<std::string, std::string>>& steps,
                              const std::vector<std::pair<std::string, std::string>>& environment) {
  const std::string binary = std::string(BuildDir()) + "/bin/" + program;
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  struct winsize size = {};
  size.ws_row = 50;
  size.ws_col = 120;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("no terminal");
  if (child == 0) {
    unsetenv("NO_COLOR");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", folder.c_str(), 1);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    alarm(kSessionSeconds);
    if (chdir(folder.c_str()) == 0) execv(binary.c_str(), argv.data());
    _exit(127);
  }
  TerminalSession session;
  std::size_t seen = 0;
  for (const auto& [wanted, keys] : steps) {
    seen = ReadUntil(terminal, wanted, seen, &session.screen);
    // A program that has ended does not read; what is missing on the screen tells.
    if (write(terminal, keys.data(), keys.size()) < 0) break;
  }
  ReadUntil(terminal, kNever, seen, &session.screen);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("cannot run " + binary);
  close(terminal);
  session.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return session;
}

}  // namespace rewire::test

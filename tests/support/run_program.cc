// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/support/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

constexpr unsigned kMostSeconds = 120;
constexpr unsigned kNobody = 65534;

// Whether a process runs `binary` and has a handler for a signal, as Linux tells. Before it runs that, it has
// the handlers of the test program. True if it has ended.
bool Catches(pid_t process, const std::string& binary, int signal) {
  std::error_code ended;
  const std::filesystem::path runs =
      std::filesystem::read_symlink("/proc/" + std::to_string(process) + "/exe", ended);
  if (ended) return true;
  if (runs != std::filesystem::canonical(binary)) return false;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) == 0) {
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
  }
  return true;  // it has ended
}

void Redirect(int descriptor, const std::string& path, int flags = O_WRONLY | O_CREAT | O_TRUNC) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(127);
  close(file);
}

void RedirectAll(const Streams& streams, const std::string& out, const std::string& err) {
  if (!streams.in.empty()) Redirect(STDIN_FILENO, streams.in, O_RDONLY);
  Redirect(STDOUT_FILENO, out);
  Redirect(STDERR_FILENO, err);
  int ends[2];
  if (streams.out_unread && (pipe(ends) != 0 || close(ends[0]) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)) {
    _exit(127);
  }
  if (streams.in_waits && (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0)) _exit(127);
  if (streams.unprivileged && getuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(127);
  if (streams.in_closed) close(STDIN_FILENO);
  if (streams.out_closed) close(STDOUT_FILENO);
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rewire-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& content) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string ReadWholeFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Finished RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const Streams& streams) {
  const std::string binary = std::string(BuildDir()) + "/bin/" + program;
  const TempFolder capture;
  const std::string out = streams.out.empty() ? (capture.path() / "out").string() : streams.out;
  const std::string err = (capture.path() / "err").string();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    RedirectAll(streams, out, err);
    alarm(kMostSeconds);
    if (chdir(folder.c_str()) == 0) execv(binary.c_str(), argv.data());
    _exit(127);
  }
  if (child > 0 && streams.signal != 0) {
    const auto is_ready = [&] {
      return Catches(child, binary, streams.signal) && std::filesystem::exists(folder / streams.signal_after);
    };
    for (unsigned i = 0; i < kMostSeconds * 1000 && !is_ready(); ++i) usleep(1000);
    usleep(50000);  // so that it is probably at its work
    kill(child, streams.signal);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) throw std::runtime_error("cannot run " + binary);
  Finished finished;
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (streams.out.empty()) finished.out = ReadWholeFile(out);
  finished.err = ReadWholeFile(err);
  return finished;
}

}  // namespace rewire::test

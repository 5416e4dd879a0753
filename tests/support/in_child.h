// SPDX-License-Identifier: Apache-2.0
// Runs code that is expected to abort in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <string>

namespace rewire::test {

// The text that a child process wrote to stderr, and how it ended (waitpid).
struct Outcome {
  std::string written;
  int status = 0;
};

template <typename Body>
Outcome InChild(const Body& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);  // the test runner's handler would report the abort as its own
    body();
    _exit(0);
  }
  close(ends[1]);
  Outcome outcome;
  std::array<char, 512> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    outcome.written.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  return outcome;
}

}  // namespace rewire::test

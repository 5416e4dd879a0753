// SPDX-License-Identifier: Apache-2.0
// The process of a sandbox tries what it cannot do, each time in a process of its own.
#include "rewire/serve/worker/lock_down.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "rewire/tests/support/in_child.h"

namespace rewire::serve::test {
namespace {

using rewire::test::InChild;

// How a process ends that has locked itself down and then does this.
template <typename Act>
int StatusAfter(const Act& act) {
  return InChild([&] {
           if (!LockDown({std::uint64_t{1} << 28})) _exit(99);
           act();
         })
      .status;
}

TEST_CASE("lock down: computing goes on") {
  const int status = StatusAfter([] {
    std::vector<char> memory(1 << 24, 'a');
    if (write(STDERR_FILENO, memory.data(), 10) != 10) _exit(1);
  });
  CHECK(status == 0);
}

TEST_CASE("lock down: nothing can be opened") {
  for (const char* const path : {"/etc/passwd", "/dev/null", "/proc/self/maps"}) {
    const int status = StatusAfter([path] { _exit(open(path, O_RDONLY) < 0 && errno == EPERM ? 0 : 1); });
    CHECK(status == 0);
  }
}

TEST_CASE("lock down: what else a program may want ends it") {
  struct Row {
    const char* what;
    void (*act)();
  };
  const Row rows[] = {
      {"a socket", [] { (void)socket(AF_INET, SOCK_STREAM, 0); }},
      {"a process", [] { (void)fork(); }},
      {"another program",
       [] {
         char name[] = "/bin/true";
         char* const arguments[] = {name, nullptr};
         execv(name, arguments);
       }},
      {"a signal for its parent", [] { (void)kill(getppid(), SIGTERM); }},
      {"to trace", [] { (void)ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }},
      {"pages with code",
       [] { (void)mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
      {"code in pages that it has",
       [] {
         void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
       }},
      {"a larger file", [] { (void)!ftruncate(STDERR_FILENO, 10); }},
      {"a new name", [] { (void)rename("a", "b"); }},
      {"a descriptor's copy", [] { (void)dup(STDERR_FILENO); }},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const int status = StatusAfter([&] { row.act(); });
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS);
  }
}

#ifndef REWIRE_SANITIZED  // then the limit is not set
TEST_CASE("lock down: memory has a limit") {
  const int status = StatusAfter([] {
    void* const much =
        mmap(nullptr, std::size_t{1} << 29, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _exit(much == MAP_FAILED ? 0 : 1);
  });
  CHECK(status == 0);
}
#endif

}  // namespace
}  // namespace rewire::serve::test

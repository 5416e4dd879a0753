// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/worker_thread.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

namespace rewire {
namespace {

struct Asleep {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
  bool ends = false;

  static void* Main(void* self) {
    auto& asleep = *static_cast<Asleep*>(self);
    std::unique_lock<std::mutex> lock(asleep.mutex);
    asleep.begun = true;
    asleep.changed.notify_all();
    asleep.changed.wait(lock, [&] { return asleep.ends; });
    return nullptr;
  }
};

TEST_CASE("a worker thread blocks the signals that any thread of the process may get") {
  sigset_t before, seen, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  WorkerThread worker;
  REQUIRE(worker.Start(
      [](void* mask) -> void* {
        pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t*>(mask));
        return nullptr;
      },
      &seen));
  worker.Join();
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2, SIGPIPE}) {
    CAPTURE(signal);
    CHECK(sigismember(&seen, signal) == 1);
  }
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    CAPTURE(signal);
    CHECK(sigismember(&seen, signal) == 0);
  }
  // The thread that made it handles the same signals as before.
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    CHECK(sigismember(&before, signal) == sigismember(&after, signal));
  }
}

TEST_CASE("a forked child does not wait for a thread of its parent") {
  Asleep asleep;
  WorkerThread worker;
  REQUIRE(worker.Start(&Asleep::Main, &asleep));
  {
    std::unique_lock<std::mutex> lock(asleep.mutex);
    asleep.changed.wait(lock, [&] { return asleep.begun; });
  }
  CHECK(worker.IsInThisProcess());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that waits
    worker.Join();
    _exit(worker.IsInThisProcess() ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  {
    const std::lock_guard<std::mutex> lock(asleep.mutex);
    asleep.ends = true;
  }
  asleep.changed.notify_all();
  worker.Join();
}

}  // namespace
}  // namespace rewire

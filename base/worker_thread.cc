// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/worker_thread.h"

#include <signal.h>
#include <unistd.h>

namespace rewire {
namespace {

// Signals that the kernel sends to one thread for what that thread has done.
constexpr int kOfThisThread[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF};

}  // namespace

bool WorkerThread::Start(void* (*main)(void* argument), void* argument) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int signal : kOfThisThread) sigdelset(&blocked, signal);
  // A new thread has the mask of the thread that makes it.
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const bool started = pthread_create(&thread_, nullptr, main, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  process_ = getpid();
  return started;
}

void WorkerThread::Join() const {
  if (IsInThisProcess()) pthread_join(thread_, nullptr);
}

bool WorkerThread::IsInThisProcess() const { return process_ == getpid(); }

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
//
// WorkerThread: a thread that the library makes for its own work in a host's process.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "rewire/base/export.h"

namespace rewire {

// A handle of the thread, copied like a pthread_t.
//
// Signals: the thread blocks those that any thread of the process may get. The host's handlers so run on
// threads that the host made. Signals of faults stay open, because they go to the thread that caused them,
// and so does a profiler's clock.
//
// Forks: a forked child has none of the threads of its parent. It must not wait for them, and must not touch
// what they may have locked.
class REWIRE_API WorkerThread {
 public:
  // Starts a thread that calls main(argument). Returns false if the system has no more threads.
  bool Start(void* (*main)(void* argument), void* argument);
  // Waits until the thread has ended. Returns at once in a process that does not have the thread.
  void Join() const;
  // False in a process that was forked since the thread was started.
  bool IsInThisProcess() const;

 private:
  pthread_t thread_{};
  pid_t process_ = 0;
};

}  // namespace rewire

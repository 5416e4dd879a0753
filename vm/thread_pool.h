// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/thread_pool.h>.
//
// ThreadPool: where the parallel loops of kernels run. A Program has one pool: its own, or one that the host
// provides.
#pragma once

#include <cstdint>
#include <memory>

#include "rewire/base/export.h"

namespace rewire {

class REWIRE_API ThreadPool {
 public:
  // Must not throw.
  using Body = void (*)(void* data, std::int64_t begin, std::int64_t end);

  virtual ~ThreadPool() = default;
  // Number of threads that can work at once, including the caller's; at least 1.
  virtual std::int32_t thread_count() const = 0;
  // Splits [begin, end) into ranges of at least `grain`, calls `body` on each, and returns when all are done.
  //
  // The caller's thread takes part. Several threads may call this at once. A call from inside a body runs
  // serially.
  virtual void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body,
                           void* data) = 0;

  // Runs everything on the calling thread.
  static std::shared_ptr<ThreadPool> Serial();
  // Makes a pool of `threads` threads, including the caller's; fewer if the system has no more. The caller
  // works from the front of a range and the others from its end. A thread without work looks for some for
  // 100 us and then sleeps. Destroy it only when no call is running.
  //
  // The other threads block signals, so that the host's handlers run on the host's threads. A child of fork
  // does not have these threads: there the pool runs everything on the calling thread, and letting go of it
  // waits for nothing.
  static std::shared_ptr<ThreadPool> Make(std::int32_t threads);
};

}  // namespace rewire

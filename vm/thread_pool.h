// SPDX-License-Identifier: Apache-2.0
// The thread pool that kernels' parallel-for runs on. A Program has one: its own, or one that the host
// injects.
#pragma once

#include <cstdint>
#include <memory>

#include "base/export.h"

namespace rewire {

class REWIRE_API ThreadPool {
 public:
  // Must not throw.
  using Body = void (*)(void* data, std::int64_t begin, std::int64_t end);

  virtual ~ThreadPool() = default;
  // Threads that can work at once, the caller's included; at least 1.
  virtual std::int32_t thread_count() const = 0;
  // Splits [begin, end) into ranges of at least `grain`, runs body on each, returns when all are done. The
  // caller's thread takes part. Several threads may call at once; a call from inside a body runs serially.
  virtual void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body,
                           void* data) = 0;

  // Runs everything on the calling thread.
  static std::shared_ptr<ThreadPool> Serial();
  // `threads` in all, the caller's included; fewer when the system gives no more. The caller works from the
  // front of a range on, the others from its end. Destroyed when no call runs.
  static std::shared_ptr<ThreadPool> Make(std::int32_t threads);
};

}  // namespace rewire

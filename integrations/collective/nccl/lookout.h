// SPDX-License-Identifier: Apache-2.0
//
// Says when a wait for other ranks must end.
#pragma once

#include <chrono>

#include "rewire/integrations/collective/nccl/job.h"

namespace rewire::collective {

// One wait, which begins when this is made.
class Lookout {
 public:
  explicit Lookout(Job& job) : job_(job), start_(Clock::now()) {}

  // Fails if a rank has left, or has ended. One that has ended gets 100 ms, since what it has sent may still
  // be on its way.
  kernel::Status Lost();
  // As Lost. Fails, too, if the wait has lasted longer than the job's timeout, and on the thread of a kernel
  // if the run was cancelled or its deadline has passed.
  kernel::Status Look();

 private:
  using Clock = std::chrono::steady_clock;

  Job& job_;
  Clock::time_point start_;
  int ended_ = -1;  // the rank that was first seen to have ended
  Clock::time_point ended_at_{};
};

}  // namespace rewire::collective

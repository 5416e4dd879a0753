// SPDX-License-Identifier: Apache-2.0
//
// How a call waits for other ranks: not in vain, not for ever, and not at the cost of a whole CPU.
#pragma once

#include <chrono>
#include <cstdint>

#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

class World;

// One wait. Call Pause after each look that was in vain.
class Patience {
 public:
  explicit Patience(World& world) : world_(world) {}

  // Fails when the call must end: the run was cancelled or its deadline has passed, a rank has ended or has
  // left, or the timeout is over. A rank that has ended gets 100 ms, since its last messages may still be on
  // their way. At first it returns at once; after 2 ms it sleeps, at most for a millisecond.
  kernel::Status Pause();

 private:
  using Clock = std::chrono::steady_clock;

  kernel::Status Look(Clock::time_point now);

  World& world_;
  std::uint32_t pauses_ = 0;
  Clock::time_point start_{};
  Clock::time_point next_look_{};
  int ended_ = -1;  // the rank that was first seen to have ended
  Clock::time_point ended_at_{};
};

}  // namespace rewire::collective

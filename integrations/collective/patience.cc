// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/patience.h"

#include <algorithm>
#include <thread>

#include "rewire/integrations/collective/timeout.h"
#include "rewire/integrations/collective/world.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::uint32_t kPausesBetweenClocks = 64;
constexpr milliseconds kSpin{2};
constexpr milliseconds kGrace{100};

}  // namespace

Status Patience::Pause() {
  const bool sleeps = start_ != Clock::time_point() && next_look_ - start_ > kSpin;
  if (++pauses_ % kPausesBetweenClocks != 0 && !sleeps) return Status();
  const Clock::time_point now = Clock::now();
  if (start_ == Clock::time_point()) start_ = now;
  if (now >= next_look_) {
    next_look_ = now + milliseconds(1);
    if (Status s = Look(now); !s.ok()) return s;
  }
  if (const auto waited = now - start_; waited > kSpin) {
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 64, microseconds(20), milliseconds(1)));
  }
  return Status();
}

Status Patience::Look(Clock::time_point now) {
  if (world_.is_running() && __rewire_kernel_api->cancelled() != 0) return kernel::cpu::Stopped();
  if (Status s = world_.Notice(); !s.ok()) return s;
  // The first that is seen: ranks that end later may have done so for its sake. If several have ended by
  // then, the others have told why, and that comes within the grace.
  if (ended_ < 0) {
    ended_ = world_.FirstEnded();
    ended_at_ = now;
  } else if (now - ended_at_ >= kGrace) {
    return RuntimeError(world_.Name(ended_), " has ended");
  }
  return now - start_ < world_.timeout() ? Status() : TimedOut(world_.timeout());
}

}  // namespace rewire::collective

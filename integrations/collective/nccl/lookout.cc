// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/lookout.h"

#include "rewire/integrations/collective/timeout.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

namespace {

constexpr std::chrono::milliseconds kGrace{100};

}  // namespace

Status Lookout::Lost() {
  if (Status s = job_.Notice(); !s.ok()) return s;
  const Clock::time_point now = Clock::now();
  if (ended_ < 0) {
    ended_ = job_.FirstEnded();
    ended_at_ = now;
  } else if (now - ended_at_ >= kGrace) {
    return RuntimeError(job_.Name(ended_), " has ended");
  }
  return Status();
}

Status Lookout::Look() {
  if (__rewire_kernel_api->cancelled() != 0) return kernel::cpu::Stopped();
  if (Status s = Lost(); !s.ok()) return s;
  return Clock::now() - start_ < job_.timeout() ? Status() : TimedOut(job_.timeout());
}

}  // namespace rewire::collective

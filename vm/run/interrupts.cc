// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/interrupts.h"

namespace rewire {

void Interrupts::Cancel() {
  const std::uint64_t run = runs_.current();
  if (!RunCounter::IsRun(run)) return;
  runs_.Cancel(run);
  flags_.fetch_or(kCancelRequested, std::memory_order_release);
}

void Interrupts::SetDeadline(std::chrono::steady_clock::time_point when) {
  deadline_ = when;
  if (when == std::chrono::steady_clock::time_point::max()) {
    Clear(kHasDeadline);
  } else {
    Set(kHasDeadline);
  }
}

Status Interrupts::Check() const {
  if (cancelled()) return Fail(StatusCode::kCancelled, "the run was cancelled");
  return late() ? Fail(StatusCode::kDeadlineExceeded, "the deadline passed") : Status();
}

}  // namespace rewire

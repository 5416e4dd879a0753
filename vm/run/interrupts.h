// SPDX-License-Identifier: Apache-2.0
//
// Interrupts: what a run must look at besides its instructions.
//
// The loop asks for one word of flags. Only if one is set it asks which: a cancellation, which may come from
// any thread, a deadline, copies in flight, an observer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "rewire/base/likely.h"
#include "rewire/base/status.h"
#include "rewire/vm/run/run_counter.h"

namespace rewire {

class Interrupts {
 public:
  enum Flag : std::uint32_t {
    kCancelRequested = 1,
    kHasDeadline = 2,
    kInFlight = 4,  // copies use memory of the host (DeviceWork::in_flight)
    kObserved = 8,  // an observer wants to know of kernel calls
  };

  std::uint32_t flags() const { return flags_.load(std::memory_order_relaxed); }
  bool Has(Flag flag) const { return (flags() & flag) != 0; }
  void Set(Flag flag) { flags_.fetch_or(flag, std::memory_order_relaxed); }
  void Clear(Flag flag) { flags_.fetch_and(~std::uint32_t{flag}, std::memory_order_relaxed); }

  // Before and after a run, or the wait for one. What was asked of an earlier run is not asked of this one.
  void BeginRun() {
    if (REWIRE_UNLIKELY(Has(kCancelRequested))) Clear(kCancelRequested);
    runs_.Begin();
  }
  void EndRun() { runs_.End(); }

  // Cancels the run that is going on. From any thread.
  void Cancel();
  void SetDeadline(std::chrono::steady_clock::time_point when);

  bool cancelled() const { return Has(kCancelRequested) && runs_.cancelled(); }
  bool late() const { return Has(kHasDeadline) && std::chrono::steady_clock::now() >= deadline_; }
  // Whether the run that is going on may go on. Errors: kCancelled, kDeadlineExceeded.
  [[gnu::cold]] Status Check() const;

 private:
  std::atomic<std::uint32_t> flags_{0};
  RunCounter runs_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
//
// RunCounter: which run of a VM is going on, and which one was cancelled.
//
// A cancellation applies to the run that was going on when it came. So runs are numbered: 1, 3, 5 and so on.
// Between two of them the number is even. Begin and End come from the VM's thread, everything else from any.
#pragma once

#include <atomic>
#include <cstdint>

namespace rewire {

class RunCounter {
 public:
  void Begin() { Advance(std::memory_order_release); }
  void End() { Advance(std::memory_order_relaxed); }
  std::uint64_t current() const { return current_.load(std::memory_order_acquire); }
  static bool IsRun(std::uint64_t number) { return number % 2 != 0; }

  // Cancels a run that was the current one. The thread may have been held since it asked which one that was.
  // So the number only rises: a late cancellation of an earlier run takes nothing back.
  void Cancel(std::uint64_t run) {
    std::uint64_t before = cancelled_.load(std::memory_order_relaxed);
    while (before < run && !cancelled_.compare_exchange_weak(before, run, std::memory_order_relaxed)) {
    }
  }
  // Whether the current run was cancelled.
  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) == current_.load(std::memory_order_relaxed);
  }

 private:
  void Advance(std::memory_order order) {
    current_.store(current_.load(std::memory_order_relaxed) + 1, order);
  }

  std::atomic<std::uint64_t> current_{0};
  std::atomic<std::uint64_t> cancelled_{0};
};

}  // namespace rewire

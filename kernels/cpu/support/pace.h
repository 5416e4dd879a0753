// SPDX-License-Identifier: Apache-2.0
//
// Pace: long work asks the host from time to time whether to go on. So a deadline or a cancellation ends a
// kernel of any size within milliseconds.
//
// Work is counted in simple operations of a few nanoseconds each. Every loop whose length depends on a tensor
// runs through ParallelFor (parallel.h), SerialFor or a Pace. Each asks every kPace operations, which costs
// less than a thousandth of the work itself. A kernel that was told to stop returns Stopped(); the VM
// replaces it by the host's reason.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/vm/kernel/compiled.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// Simple operations between two questions: about 10 us, and below a millisecond if each is a call of pow.
inline constexpr std::int64_t kPace = 16384;

[[gnu::cold]] REWIRE_KERNEL_INLINE Status Stopped();

// Counts the work of one thread and asks when enough has been done. Once told to stop, it always answers
// stop.
class Pace {
 public:
  Pace() = default;
  // For one of several threads: `shared` tells all of them when one was told to stop.
  explicit Pace(std::atomic<bool>* shared) : shared_(shared) {}
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // Reports work, at least 0, that is about to be done. Returns false if the caller must stop.
  [[nodiscard]] bool Spend(std::int64_t work) {
    left_ -= work;
    return left_ > 0 || Ask();
  }
  bool stopped() const { return stopped_; }
  Status status() const { return stopped_ ? Stopped() : Status(); }

  // Calls body(begin, end) for [0, count) in pieces, in order. Returns false if told to stop. `work` is the
  // amount of work per index.
  template <typename Body>
  [[nodiscard]] bool For(std::int64_t count, std::int64_t work, const Body& body) {
    std::int64_t piece = count, cost = Times(count, work);
    if (cost > kPace) [[unlikely]] {
      piece = std::max<std::int64_t>(1, kPace / std::max<std::int64_t>(1, work));
      cost = Times(piece, work);
    }
    // One loop for short counts and long ones: the body, which is inlined, is compiled once.
    for (std::int64_t begin = 0; begin < count;) {
      if (!Spend(cost)) return false;
      const std::int64_t end = count - begin <= piece ? count : begin + piece;
      body(begin, end);
      begin = end;
    }
    return !stopped_;
  }
  // std::memcpy and std::fill_n for any size.
  [[nodiscard]] bool Copy(void* to, const void* from, std::int64_t bytes) {
    std::int64_t done = 0;
    do {
      const std::int64_t part = std::min(kCopied, bytes - done);
      if (!Spend(1 + part / 8)) return false;
      if (part > 0) {
        std::memcpy(static_cast<char*>(to) + done, static_cast<const char*>(from) + done,
                    static_cast<std::size_t>(part));
      }
      done += part;
    } while (done < bytes);
    return true;
  }
  template <typename T>
  [[nodiscard]] bool Fill(T* to, std::int64_t count, T value) {
    return For(count, 1,
               [=](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, value); });
  }

 private:
  // Bytes that can be copied in the time of kPace operations.
  static constexpr std::int64_t kCopied = 8 * kPace;

  [[gnu::cold]] bool Ask();

  std::int64_t left_ = kPace;
  std::atomic<bool>* shared_ = nullptr;
  bool stopped_ = false;
};

// Runs Pace::For for one loop and returns a Status.
template <typename Body>
[[nodiscard]] Status SerialFor(std::int64_t count, std::int64_t work, const Body& body) {
  Pace pace;
  return pace.For(count, work, body) ? Status() : Stopped();
}

template <typename T>
[[nodiscard]] Status FillAll(T* to, std::int64_t count, T value) {
  Pace pace;
  return pace.Fill(to, count, value) ? Status() : Stopped();
}

[[nodiscard]] inline Status CopyAll(void* to, const void* from, std::int64_t bytes) {
  Pace pace;
  return pace.Copy(to, from, bytes) ? Status() : Stopped();
}

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE Status Stopped() {
  return RuntimeError("stopped: the run was cancelled or its deadline has passed");
}

REWIRE_KERNEL_INLINE bool Pace::Ask() {
  stopped_ = stopped_ || (shared_ != nullptr && shared_->load(std::memory_order_relaxed)) ||
             __rewire_kernel_api->cancelled() != 0;
  if (stopped_ && shared_ != nullptr) shared_->store(true, std::memory_order_relaxed);
  left_ = stopped_ ? 0 : kPace;
  return !stopped_;
}
#endif

}  // namespace rewire::kernel::cpu

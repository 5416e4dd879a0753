// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops on the program's threads, and scratch memory of the VM for one call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// With fewer elements of simple work, a second thread costs more than it saves.
inline constexpr std::int64_t kGrain = 16384;

// How many tasks make up `budget` simple operations. The product of the factors is the work of one task.
template <typename... Factors>
constexpr std::int64_t GrainOf(std::int64_t budget, std::int64_t work, Factors... factors) {
  if constexpr (sizeof...(Factors) == 0)
    return std::max<std::int64_t>(1, budget / std::max<std::int64_t>(1, work));
  else
    return GrainOf(budget, Times(work, factors...));
}

// True if a body asks by itself whether to stop, through a Pace parameter.
template <typename Body>
inline constexpr bool kPacesItself = std::is_invocable_v<const Body&, std::int64_t, std::int64_t, Pace&>;

// Runs body(begin, end) over [0, count), in ranges of at least `grain`, perhaps on several threads. `grain`
// tasks should be worth a thread's while: about kGrain operations, or one task that may be longer.
//
// The host is asked before each grain. If single tasks may be long, the body takes a third parameter, Pace&.
// It then gets whole ranges and asks by itself. Returns Stopped() if the host says stop; some of the work is
// then not done.
template <typename Body>
[[nodiscard]] Status ParallelFor(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return Status();
  if (count <= grain) {
    if constexpr (kPacesItself<Body>) {
      Pace pace;
      body(std::int64_t{0}, count, pace);
      return pace.status();
    } else {
      body(std::int64_t{0}, count);
      return Status();
    }
  }
  struct Job {
    const Body& body;
    std::int64_t piece;
    std::atomic<bool> stopped{false};
  } job{body, grain};
  __rewire_kernel_api->parallel_for(
      0, count, grain,
      [](void* data, std::int64_t begin, std::int64_t end) {
        auto& of = *static_cast<Job*>(data);
        Pace pace(&of.stopped);
        if constexpr (kPacesItself<Body>) {
          if (pace.Spend(kPace)) of.body(begin, end, pace);
        } else {
          while (begin < end && pace.Spend(kPace)) {
            const std::int64_t last = end - begin <= of.piece ? end : begin + of.piece;
            of.body(begin, last);
            begin = last;
          }
        }
      },
      &job);
  return job.stopped.load(std::memory_order_relaxed) ? Stopped() : Status();
}

// The most tasks in a stage.
inline constexpr std::int64_t kMostStageTasks = 64;

// Runs body(stage, task) for each task of each stage, perhaps on several threads. All tasks of a stage come
// after all tasks of the stage before. It is for stages of a few microseconds, for which a ParallelFor each
// would cost too much.
//
// Each thread has a range of the tasks, the same in all stages, because its caches have the data. When it is
// done with these, it takes what is left of the others' ranges. A thread waits, by spinning, only for tasks
// that another thread is already running. So the loop ends with any number of threads. body(stage, task,
// pace) reports its work to the Pace and returns early when told to.
template <typename Body>
[[nodiscard]] Status ParallelStages(std::int64_t stages, std::int64_t tasks, const Body& body) {
  constexpr int kSpins = 2000;
  // Each on a cache line of its own. Where a range has one, other threads look at it once in a stage.
  struct alignas(64) Line {
    std::atomic<std::int64_t> count{0};
  };
  struct {
    Line begun[kMostStageTasks];  // tasks of a range, in all stages
    Line done;                    // tasks of all ranges
    Line threads;
    std::atomic<bool> stopped{false};
  } progress;
  const std::int64_t ranges = std::min<std::int64_t>(__rewire_kernel_api->thread_count(), tasks);
  // Runs what is left of a range in a stage. Returns how many tasks that was.
  const auto run_range = [&](std::int64_t range, std::int64_t stage, Pace& pace) {
    const std::int64_t first = tasks * range / ranges, size = tasks * (range + 1) / ranges - first;
    std::atomic<std::int64_t>& count = progress.begun[range].count;
    std::int64_t finished = 0;
    for (std::int64_t begun = count.load(std::memory_order_relaxed); begun < (stage + 1) * size;) {
      if (!count.compare_exchange_weak(begun, begun + 1, std::memory_order_relaxed)) continue;
      body(stage, first + begun - stage * size, pace);
      if (pace.stopped()) break;
      ++finished;
      begun = count.load(std::memory_order_relaxed);
    }
    return finished;
  };
  const auto work = [&](std::int64_t, std::int64_t) {
    Pace pace(&progress.stopped);
    const std::int64_t own = progress.threads.count.fetch_add(1, std::memory_order_relaxed);
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      std::int64_t finished = 0;
      for (std::int64_t i = 0; i < ranges && !pace.stopped(); ++i) {
        finished += run_range((own + i) % ranges, stage, pace);
      }
      if (pace.stopped()) return;
      if (finished > 0) progress.done.count.fetch_add(finished, std::memory_order_acq_rel);
      const std::int64_t all = (stage + 1) * tasks;
      for (int spins = 0; progress.done.count.load(std::memory_order_acquire) < all; ++spins) {
        if (spins < kSpins) {
#if defined(__x86_64__) || defined(__i386__)
          __builtin_ia32_pause();
#endif
        } else {
          // The thread that this one waits for may have been told to stop.
          if (progress.stopped.load(std::memory_order_relaxed)) return;
          std::this_thread::yield();
        }
      }
    }
  };
  Status status = ParallelFor(ranges, 1, work);
  if (status.ok() && progress.stopped.load(std::memory_order_relaxed)) return Stopped();
  return status;
}

// Allocates uninitialized scratch memory of `count` elements, 64-byte aligned, valid until the kernel
// returns. `count` must come from Times or Product, so that sizes that are too large are refused.
template <typename T>
Status Workspace(std::int64_t count, T** memory) {
  const std::int64_t bytes = Times(count, static_cast<std::int64_t>(sizeof(T)));
  if (count < 0 || bytes == kMostSize)
    return Status("MemoryError", "the scratch memory that these shapes need is too large");
  *memory = static_cast<T*>(__rewire_kernel_api->workspace(static_cast<std::uint64_t>(bytes)));
  return *memory != nullptr ? Status() : Status::AlreadySet();
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Work for the program's threads, and memory for the length of a call, from the VM.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "vm/kernel/kernel.h"
#include "vm/kernel/status.h"

namespace rewire::kernel::cpu {

// Elements of simple work below which a second thread costs more than it saves.
inline constexpr std::int64_t kGrain = 16384;

// body(begin, end) over [0, count), in ranges of at least `grain`, perhaps on several threads.
template <typename Body>
void ParallelFor(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain) {
    body(std::int64_t{0}, count);
    return;
  }
  __rewire_kernel_api->parallel_for(
      0, count, grain,
      [](void* data, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(data))(begin, end); },
      const_cast<Body*>(&body));
}

// The most tasks of a stage.
inline constexpr std::int64_t kMostStageTasks = 64;

// body(stage, task) for each of `tasks` tasks of each of `stages` stages, those of a stage after all of the
// one before, perhaps on several threads: for stages of some microseconds, for which a ParallelFor each would
// cost too much. A task goes to the same thread in each stage, whose caches have its data, unless that is
// late. Nobody waits but for tasks that a thread is at, so that any number of threads comes to an end;
// waiting spins.
template <typename Body>
void ParallelStages(std::int64_t stages, std::int64_t tasks, const Body& body) {
  constexpr int kSpins = 2000;
  struct alignas(64) Line {
    std::atomic<std::int64_t> count{0};
  };
  struct {
    Line begun[kMostStageTasks];  // stages in which the task was taken
    Line done;                    // tasks
    Line threads;
  } progress;
  const auto work = [&](std::int64_t, std::int64_t) {
    const std::int64_t own = progress.threads.count.fetch_add(1, std::memory_order_relaxed);
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t i = 0; i < tasks; ++i) {
        const std::int64_t task = (own + i) % tasks;
        std::int64_t begun = stage;
        if (!progress.begun[task].count.compare_exchange_strong(begun, stage + 1, std::memory_order_relaxed))
          continue;
        body(stage, task);
        progress.done.count.fetch_add(1, std::memory_order_acq_rel);
      }
      const std::int64_t all = (stage + 1) * tasks;
      for (int spins = 0; progress.done.count.load(std::memory_order_acquire) < all; ++spins) {
        if (spins < kSpins) {
#if defined(__x86_64__) || defined(__i386__)
          __builtin_ia32_pause();
#endif
        } else {
          std::this_thread::yield();
        }
      }
    }
  };
  ParallelFor(std::min<std::int64_t>(__rewire_kernel_api->thread_count(), tasks), 1, work);
}

// Uninitialised scratch of `count` elements, 64-byte aligned, until the kernel returns.
template <typename T>
Status Workspace(std::int64_t count, T** memory) {
  *memory = static_cast<T*>(__rewire_kernel_api->workspace(static_cast<std::uint64_t>(count) * sizeof(T)));
  return *memory != nullptr ? Status() : Status::AlreadySet();
}

}  // namespace rewire::kernel::cpu

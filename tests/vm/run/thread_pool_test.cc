// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/thread_pool.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace rewire {
namespace {

// Counts how often each element of a range was visited, and the shortest range.
struct Visits {
  explicit Visits(std::size_t size) : counts(size) {}
  std::vector<std::atomic<int>> counts;
  std::atomic<std::int64_t> shortest{std::numeric_limits<std::int64_t>::max()};

  static void Body(void* data, std::int64_t begin, std::int64_t end) {
    auto* visits = static_cast<Visits*>(data);
    for (std::int64_t i = begin; i < end; ++i) ++visits->counts[static_cast<std::size_t>(i)];
    std::int64_t shortest = visits->shortest;
    while (end - begin < shortest && !visits->shortest.compare_exchange_weak(shortest, end - begin)) {
    }
  }
  bool AllOnce() const {
    for (const auto& count : counts) {
      if (count != 1) return false;
    }
    return true;
  }
};

TEST_CASE("every element is visited once, in ranges of at least the grain") {
  for (std::int32_t threads : {1, 2, 3, 8}) {
    const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
    CHECK(pool->thread_count() == threads);
    for (std::size_t size : {0, 1, 2, 7, 64, 1000}) {
      for (std::int64_t grain : {0, 1, 3, 100, 5000}) {
        Visits visits(size);
        pool->ParallelFor(0, static_cast<std::int64_t>(size), grain, &Visits::Body, &visits);
        CHECK(visits.AllOnce());
        if (static_cast<std::int64_t>(size) >= grain && size != 0) CHECK(visits.shortest >= grain);
      }
    }
  }
}

TEST_CASE("an empty or backward range runs nothing, the widest range does not overflow") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(4);
  std::atomic<int> calls{0};
  const auto count = [](void* data, std::int64_t, std::int64_t) { ++*static_cast<std::atomic<int>*>(data); };
  pool->ParallelFor(5, 5, 1, count, &calls);
  pool->ParallelFor(5, -5, 1, count, &calls);
  CHECK(calls == 0);

  struct Sum {
    std::mutex mutex;
    std::uint64_t elements = 0;
    std::int64_t least = 0, most = 0;
  } sum;
  pool->ParallelFor(
      std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), 1,
      [](void* data, std::int64_t begin, std::int64_t end) {
        auto* total = static_cast<Sum*>(data);
        const std::lock_guard<std::mutex> lock(total->mutex);
        total->elements += static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin);
        total->least = std::min(total->least, begin);
        total->most = std::max(total->most, end);
      },
      &sum);
  CHECK(sum.elements == std::numeric_limits<std::uint64_t>::max());
  CHECK(sum.least == std::numeric_limits<std::int64_t>::min());
  CHECK(sum.most == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("workers and caller share the work") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(2);
  struct Meeting {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<int> arrived{0};
  } meeting;
  // Each of the two ranges waits for the other: only two threads can get past.
  pool->ParallelFor(
      0, 2, 1,
      [](void* data, std::int64_t, std::int64_t) {
        auto* m = static_cast<Meeting*>(data);
        {
          const std::lock_guard<std::mutex> lock(m->mutex);
          m->threads.insert(std::this_thread::get_id());
        }
        ++m->arrived;
        while (m->arrived < 2) std::this_thread::yield();
      },
      &meeting);
  CHECK(meeting.threads.size() == 2);
  CHECK(meeting.threads.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("of two threads, the caller's elements are the first ones") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(2);
  struct Owners {
    std::thread::id of[64];
    std::atomic<int> begun{0};
  };
  for (int i = 0; i < 100; ++i) {
    Owners owners;
    const auto note = [](void* data, std::int64_t begin, std::int64_t end) {
      auto& noted = *static_cast<Owners*>(data);
      ++noted.begun;
      while (noted.begun < 2) std::this_thread::yield();  // both threads have a part
      std::fill(noted.of + begin, noted.of + end, std::this_thread::get_id());
    };
    pool->ParallelFor(0, 64, 1, note, &owners);
    const std::thread::id caller = std::this_thread::get_id();
    REQUIRE(owners.of[0] == caller);
    REQUIRE(owners.of[63] != caller);
    CHECK(std::is_partitioned(owners.of, owners.of + 64,
                              [caller](std::thread::id id) { return id == caller; }));
  }
}

TEST_CASE("a call from inside a body runs serially on the same thread") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(4);
  struct Nested {
    ThreadPool* pool;
    std::atomic<int> foreign{0};
    std::atomic<int> inner_ranges{0};
    std::atomic<int> outer_ranges{0};
  } nested{pool.get()};
  pool->ParallelFor(
      0, 16, 1,
      [](void* data, std::int64_t, std::int64_t) {
        struct Call {
          Nested* nested;
          std::thread::id thread;
        } call{static_cast<Nested*>(data), std::this_thread::get_id()};
        ++call.nested->outer_ranges;
        call.nested->pool->ParallelFor(
            0, 100, 1,
            [](void* inner, std::int64_t, std::int64_t) {
              auto* c = static_cast<Call*>(inner);
              ++c->nested->inner_ranges;
              if (c->thread != std::this_thread::get_id()) {
                ++c->nested->foreign;
              }
            },
            &call);
      },
      &nested);
  CHECK(nested.foreign == 0);
  CHECK(nested.inner_ranges == nested.outer_ranges);
}

TEST_CASE("several callers at once each get all of their work done") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        Visits visits(static_cast<std::size_t>(1 + round % 50));
        pool->ParallelFor(0, static_cast<std::int64_t>(visits.counts.size()), 1, &Visits::Body, &visits);
        if (!visits.AllOnce()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("the serial pool runs one range on the calling thread") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Serial();
  CHECK(pool->thread_count() == 1);
  Visits visits(10);
  pool->ParallelFor(0, 10, 1, &Visits::Body, &visits);
  CHECK(visits.AllOnce());
  CHECK(visits.shortest == 10);
}

TEST_CASE("the workers of a pool leave signals to the host's threads") {
  const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(4);
  struct Seen {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> by_workers{0}, open{0};
  } seen;
  // Until a worker has taken part.
  while (seen.by_workers == 0) {
    pool->ParallelFor(
        0, 64, 1,
        [](void* data, std::int64_t, std::int64_t) {
          auto& seen = *static_cast<Seen*>(data);
          std::this_thread::yield();
          if (std::this_thread::get_id() == seen.caller) return;
          sigset_t mask;
          pthread_sigmask(SIG_SETMASK, nullptr, &mask);
          if (sigismember(&mask, SIGINT) != 1) ++seen.open;
          ++seen.by_workers;
        },
        &seen);
  }
  CHECK(seen.open == 0);
}

TEST_CASE("a forked child runs a pool's work on one thread and lets go of the pool") {
  std::shared_ptr<ThreadPool> pool = ThreadPool::Make(3);
  Visits before(64);
  pool->ParallelFor(0, 64, 1, &Visits::Body, &before);
  // The workers then wait at a condition, as they do in most processes that fork.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that waits
    int calls = 0;
    const auto count = [](void* data, std::int64_t begin, std::int64_t end) {
      *static_cast<int*>(data) += begin == 0 && end == 1000 ? 1 : 100;
    };
    pool->ParallelFor(0, 1000, 1, count, &calls);
    pool.reset();
    _exit(calls == 1 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Visits after(64);
  pool->ParallelFor(0, 64, 1, &Visits::Body, &after);
  CHECK(after.AllOnce());
}

}  // namespace
}  // namespace rewire

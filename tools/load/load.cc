// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/load/load.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "rewire/tools/load/arrivals.h"

namespace rewire::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr nanoseconds kLongestSleep = std::chrono::milliseconds(100);  // then the load may have been stopped

// Wakes up within microseconds of the time, because the thread's timer slack is 1 ns. steady_clock is the
// monotonic clock on Linux.
void SleepUntil(Clock::time_point time) {
  const std::int64_t at = std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
  const timespec until = {at / 1'000'000'000, at % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

std::uint64_t Between(Clock::time_point from, Clock::time_point to) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, nanoseconds(to - from).count()));
}

// The measurements of one thread.
struct Tally {
  LoadResult result;
  Clock::time_point last;  // answer

  void Add(const LoadPlan& plan, const Status& called, Clock::time_point intended, Clock::time_point start,
           Clock::time_point end) {
    last = end;
    if (!called) {
      ++result.failed;
      const std::string message = called.error().message();
      if (result.errors.size() < LoadResult::kMostErrors || result.errors.count(message) != 0)
        ++result.errors[message];
      return;
    }
    ++result.succeeded;
    AddLatency(plan, Between(intended, end));
    result.service.Record(Between(start, end));
  }
  void AddLatency(const LoadPlan& plan, std::uint64_t latency) {
    result.latency.Record(latency);
    if (plan.keep_samples) result.samples.push_back(latency);
  }
};

// The plan that the clients share.
class Schedule {
 public:
  explicit Schedule(const LoadPlan& plan) : plan_(plan), arrivals_(plan.rate, plan.duration, plan.seed) {}

  Clock::time_point start() const { return start_; }
  bool stopped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  bool Ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return EndedAt(Clock::now());
  }
  // Whether whoever runs the load wants no more of it.
  bool IsToStop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return AskToStop();
  }
  // Takes the next arrival for a client that is free. Nothing if there is none, or if no more are served.
  std::optional<Clock::time_point> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (EndedAt(Clock::now())) return std::nullopt;
    const std::optional<nanoseconds> at = arrivals_.Next();
    if (!at) return std::nullopt;
    return start_ + *at;
  }
  // Sleeps until the time. False if the load has been stopped before.
  bool WaitFor(Clock::time_point time) {
    for (;;) {
      const Clock::time_point now = Clock::now();
      if (now >= time) return true;
      if (Ended()) return false;
      SleepUntil(std::min(time, now + kLongestSleep));
    }
  }
  // After the clients have ended: arrivals that none has taken, up to `end`.
  template <typename Function>
  void ForUnserved(Clock::time_point end, const Function& function) {
    while (const std::optional<nanoseconds> at = arrivals_.Next()) {
      if (start_ + *at >= end) break;
      function(Between(start_ + *at, end));
    }
  }

 private:
  // Both with the mutex held.
  bool AskToStop() { return stopped_ = stopped_ || (plan_.stop && plan_.stop()); }
  bool EndedAt(Clock::time_point now) {
    return AskToStop() || now >= start_ + plan_.duration + plan_.patience;
  }

  const LoadPlan& plan_;
  std::mutex mutex_;
  PoissonArrivals arrivals_;
  bool stopped_ = false;
  const Clock::time_point start_ = Clock::now();
};

void ServeArrivals(const LoadPlan& plan, Schedule* schedule, LoadClient* client, Tally* tally) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  while (const std::optional<Clock::time_point> intended = schedule->Take()) {
    if (!schedule->WaitFor(*intended)) return;
    const Clock::time_point start = Clock::now();
    const Status called = client->Call();
    tally->Add(plan, called, *intended, start, Clock::now());
  }
}

void CallInTurn(const LoadPlan& plan, Schedule* schedule, LoadClient* client, Tally* tally) {
  const Clock::time_point end = schedule->start() + plan.duration;
  Clock::time_point start = Clock::now();
  Clock::time_point next_question = start;  // whether the load has ended
  // A client that got its thread late still makes one request, so that a load always has something to tell.
  do {
    if (start >= next_question) {
      next_question = start + kLongestSleep;
      if (schedule->IsToStop()) return;
      start = Clock::now();
    }
    const Status called = client->Call();
    const Clock::time_point answered = Clock::now();
    tally->Add(plan, called, start, start, answered);
    start = answered;
  } while (start < end);
}

void Merge(const Tally& tally, LoadResult* result) {
  const LoadResult& part = tally.result;
  result->succeeded += part.succeeded;
  result->failed += part.failed;
  result->latency.Add(part.latency);
  result->service.Add(part.service);
  for (const auto& [message, times] : part.errors) {
    if (result->errors.size() < LoadResult::kMostErrors || result->errors.count(message) != 0)
      result->errors[message] += times;
  }
  result->samples.insert(result->samples.end(), part.samples.begin(), part.samples.end());
}

}  // namespace

double LoadResult::per_second() const {
  return elapsed.count() == 0 ? 0
                              : static_cast<double>(succeeded) * 1e9 / static_cast<double>(elapsed.count());
}

Result<LoadResult> RunLoad(const LoadPlan& plan, const std::vector<std::unique_ptr<LoadClient>>& clients) {
  const bool open = plan.rate > 0;
  std::vector<Tally> tallies(clients.size());
  std::vector<std::thread> threads;
  LoadResult result;
  result.plan = plan;
  Schedule schedule(plan);
  Status started;
  try {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back(open ? ServeArrivals : CallInTurn, std::cref(result.plan), &schedule,
                           clients[i].get(), &tallies[i]);
    }
  } catch (const std::system_error& error) {
    started = Fail(StatusCode::kRuntimeFailed, "cannot start a thread for each of {} clients: {}",
                   clients.size(), error.what());
    schedule.Stop();
  }
  for (std::thread& thread : threads) thread.join();
  if (!started) return Forward(started);
  Clock::time_point end = schedule.start();
  for (const Tally& tally : tallies) {
    Merge(tally, &result);
    end = std::max(end, tally.last);
  }
  result.stopped = schedule.stopped();
  result.elapsed = end - schedule.start();
  if (open) {
    Tally unserved;
    schedule.ForUnserved(Clock::now(), [&](std::uint64_t waited) {
      ++result.unserved;
      unserved.AddLatency(plan, waited);
    });
    Merge(unserved, &result);
  }
  return result;
}

}  // namespace rewire::tools

// SPDX-License-Identifier: Apache-2.0
//
// EventLoop: one thread that waits for sockets, timers and tasks of other threads (epoll).
//
// All functions but Post and Stop belong to the loop's thread, or to the time before Run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/base/standalone/descriptor.h"
#include "rewire/base/status.h"

namespace rewire::serve {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  // Told when its file is ready. `events` are those of epoll.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnEvents(std::uint32_t events) = 0;
  };

  // Errors: kIo.
  static Result<std::unique_ptr<EventLoop>> Make();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Errors: kIo. The handler must stay until Remove. After Remove, its OnEvents is not called any more, not
  // even for what the loop has already been told.
  Status Add(int file, std::uint32_t events, Handler* handler);
  Status Change(int file, std::uint32_t events, Handler* handler);
  void Remove(int file, Handler* handler);

  // Called at this time, or soon afterwards. Returns a number for Cancel.
  using Timer = std::pair<Clock::time_point, std::uint64_t>;
  Timer At(Clock::time_point when, std::function<void()> task);
  void Cancel(const Timer& timer);

  // Called whenever everything that was ready has been handled, before the loop sleeps: Lane::Run belongs
  // here. True: there is more to do, so the loop looks for events and calls all of these again without
  // sleeping.
  void OnTurn(std::function<bool()> task) { turn_.push_back(std::move(task)); }

  // How long the loop looks for events before it sleeps, from the end of a turn that had some. A thread that
  // sleeps must be woken, which costs the client and the server more than the rest of a small request. 0: it
  // sleeps at once.
  void SetBusyPoll(std::chrono::microseconds time) { busy_poll_ = time; }

  // Any thread: the task runs on the loop's thread.
  void Post(std::function<void()> task);
  // Whether the caller is the loop's thread.
  bool IsHere() const { return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  // Returns after Stop.
  void Run();
  void Stop();

  // The time of the turn, so that a thousand connections do not ask the clock a thousand times.
  Clock::time_point now() const { return now_; }

 private:
  EventLoop() = default;
  void RunPosted();
  int WaitTime() const;

  Descriptor epoll_;
  Descriptor wake_;  // eventfd
  std::atomic<std::thread::id> thread_{};
  std::atomic<bool> stopped_{false};
  Clock::time_point now_ = Clock::now();
  std::chrono::microseconds busy_poll_{0};
  std::vector<std::function<bool()>> turn_;
  std::map<Timer, std::function<void()>> timers_;
  std::uint64_t timer_count_ = 0;
  std::vector<Handler*> removed_;  // in this turn
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  bool woken_ = false;
};

}  // namespace rewire::serve

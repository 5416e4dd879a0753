// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace rewire::serve {
namespace {

Status SystemError(const char* call) {
  return Fail(StatusCode::kIo, "{}: {}", call, std::generic_category().message(errno));
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Make() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_.is_open()) return SystemError("epoll_create1");
  loop->wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!loop->wake_.is_open()) return SystemError("eventfd");
  if (Status added = loop->Add(loop->wake_.get(), EPOLLIN, nullptr); !added) return Forward(added);
  return loop;
}

Status EventLoop::Add(int file, std::uint32_t events, Handler* handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = handler;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, file, &event) != 0) return SystemError("epoll_ctl");
  return {};
}

Status EventLoop::Change(int file, std::uint32_t events, Handler* handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = handler;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, file, &event) != 0) return SystemError("epoll_ctl");
  return {};
}

void EventLoop::Remove(int file, Handler* handler) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, file, nullptr);
  removed_.push_back(handler);
}

EventLoop::Timer EventLoop::At(Clock::time_point when, std::function<void()> task) {
  const Timer timer(when, ++timer_count_);
  timers_.emplace(timer, std::move(task));
  return timer;
}

void EventLoop::Cancel(const Timer& timer) { timers_.erase(timer); }

void EventLoop::Post(std::function<void()> task) {
  bool wake = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(std::move(task));
    wake = !std::exchange(woken_, true);
  }
  const std::uint64_t one = 1;
  // It fails only if the counter is full, and then the loop wakes up anyway.
  if (wake) [[maybe_unused]]
    const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void EventLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks.swap(posted_);
    woken_ = false;
  }
  for (const std::function<void()>& task : tasks) task();
}

int EventLoop::WaitTime() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60000));
}

void EventLoop::Run() {
  thread_ = std::this_thread::get_id();
  bool more = false;
  Clock::time_point awake_until = now_;
  while (!stopped_) {
    std::array<epoll_event, 256> events;
    const bool asks = more || now_ < awake_until;
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), asks ? 0 : WaitTime());
    now_ = Clock::now();
    more = false;
    for (int i = 0; i < count; ++i) {
      auto* const handler = static_cast<Handler*>(events[i].data.ptr);
      if (handler == nullptr) {
        std::uint64_t woken = 0;
        [[maybe_unused]] const ssize_t got = read(wake_.get(), &woken, sizeof woken);
        RunPosted();
      } else if (std::find(removed_.begin(), removed_.end(), handler) == removed_.end()) {
        handler->OnEvents(events[i].events);
      }
    }
    removed_.clear();
    while (!timers_.empty() && timers_.begin()->first.first <= now_) {
      const std::function<void()> task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
    }
    for (const std::function<bool()>& task : turn_) more |= task();
    removed_.clear();
    // From now on, and not from the beginning of the turn, whose runs may take longer.
    if (count > 0 && busy_poll_.count() > 0) awake_until = Clock::now() + busy_poll_;
  }
  RunPosted();
  thread_ = std::thread::id();
}

void EventLoop::Stop() {
  stopped_ = true;
  Post([] {});
}

}  // namespace rewire::serve

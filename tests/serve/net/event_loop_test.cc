// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <thread>

namespace rewire::serve::test {
namespace {

using std::chrono::milliseconds;

// ThreadUse tells how often the calling thread has slept so far, and for how long it has computed.
struct ThreadUse {
  long sleeps = 0;
  std::chrono::nanoseconds cpu{0};

  static ThreadUse Now() {
    rusage usage{};
    timespec cpu{};
    REQUIRE(getrusage(RUSAGE_THREAD, &usage) == 0);
    REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0);
    return {usage.ru_nvcsw, std::chrono::seconds(cpu.tv_sec) + std::chrono::nanoseconds(cpu.tv_nsec)};
  }
};

// TwoEvents: what the loop's thread does between two events that are so far apart.
class TwoEvents : public EventLoop::Handler {
 public:
  explicit TwoEvents(milliseconds apart) : apart_(apart), file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ThreadUse Between(std::chrono::microseconds busy_poll) {
    const auto made = EventLoop::Make();
    REQUIRE(made);
    loop_ = made->get();
    loop_->SetBusyPoll(busy_poll);
    REQUIRE(loop_->Add(file_.get(), EPOLLIN, this));
    std::thread client([this] {
      Tell();
      std::this_thread::sleep_for(apart_);
      Tell();
    });
    loop_->Run();
    client.join();
    return {second_.sleeps - first_.sleeps, second_.cpu - first_.cpu};
  }

 private:
  void Tell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(file_.get(), &one, sizeof one);
  }
  void OnEvents(std::uint32_t) override {
    std::uint64_t told = 0;
    [[maybe_unused]] const ssize_t got = read(file_.get(), &told, sizeof told);
    if (++count_ == 1) {
      first_ = ThreadUse::Now();
    } else {
      second_ = ThreadUse::Now();
      loop_->Stop();
    }
  }

  const milliseconds apart_;
  const Descriptor file_;
  EventLoop* loop_ = nullptr;
  int count_ = 0;
  ThreadUse first_, second_;
};

TEST_CASE("a loop sleeps between two events, unless it polls for so long") {
  CHECK(TwoEvents(milliseconds(50)).Between(std::chrono::microseconds(0)).sleeps > 0);
  CHECK(TwoEvents(milliseconds(50)).Between(std::chrono::seconds(60)).sleeps == 0);
}

TEST_CASE("a loop that polls sleeps when the time for it is over") {
  const ThreadUse use = TwoEvents(milliseconds(400)).Between(milliseconds(1));
  CHECK(use.sleeps > 0);
  CHECK(use.cpu < milliseconds(100));
}

}  // namespace
}  // namespace rewire::serve::test

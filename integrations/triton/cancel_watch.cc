// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/cancel_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rewire/integrations/triton/status.h"

namespace rewire::triton {
namespace {

constexpr std::chrono::milliseconds kBetween{10};
// Waking the thread costs a run some microseconds, so it stays awake for a while after the last one.
constexpr std::chrono::seconds kAwake{1};

}  // namespace

CancelWatch::CancelWatch() : thread_([this] { Watch(); }) {}

CancelWatch::~CancelWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

CancelWatch::Run::Run(CancelWatch* watch, serve::Instance* instance, TritonRequest* request)
    : watch_(watch), instance_(instance), request_(request), start_(serve::Clock::now()) {
  bool wake = false;
  {
    const std::lock_guard<std::mutex> lock(watch_->mutex_);
    watch_->runs_.push_back(this);
    wake = std::exchange(watch_->sleeping_, false);
  }
  if (wake) watch_->wake_.notify_one();
}

CancelWatch::Run::~Run() {
  const std::lock_guard<std::mutex> lock(watch_->mutex_);
  watch_->runs_.erase(std::find(watch_->runs_.begin(), watch_->runs_.end(), this));
}

void CancelWatch::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  serve::Clock::time_point last_run = serve::Clock::now();
  while (!ending_) {
    const serve::Clock::time_point now = serve::Clock::now();
    if (!runs_.empty()) last_run = now;
    if (now - last_run > kAwake) {
      sleeping_ = true;
      wake_.wait(lock, [this] { return ending_ || !sleeping_; });
      last_run = serve::Clock::now();
      continue;
    }
    for (Run* run : runs_) {
      if (now - run->start_ < kBetween || run->request_->cancelled) continue;
      bool is_cancelled = false;
      LogError(TRITONBACKEND_RequestIsCancelled(run->request_->handle(), &is_cancelled));
      if (!is_cancelled) continue;
      run->request_->cancelled = true;
      run->instance_->Cancel();
    }
    wake_.wait_for(lock, kBetween, [this] { return ending_; });
  }
}

}  // namespace rewire::triton

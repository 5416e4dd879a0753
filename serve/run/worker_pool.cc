// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/worker_pool.h"

#include <utility>

namespace rewire::serve {

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Run(std::function<void()> task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() > sleeping_ && threads_.size() < most_threads_) {
    threads_.emplace_back([this] { Work(); });
  } else {
    wake_.notify_one();
  }
}

void WorkerPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++sleeping_;
    wake_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    --sleeping_;
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

Alarms::Alarms() : thread_([this] { Wait(); }) {}

Alarms::~Alarms() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Alarms::At(Clock::time_point when, std::function<void()> task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto added = tasks_.emplace(when, std::move(task));
  if (added == tasks_.begin()) wake_.notify_one();
}

void Alarms::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    if (tasks_.empty()) {
      wake_.wait(lock);
    } else if (const Clock::time_point when = tasks_.begin()->first; when > Clock::now()) {
      wake_.wait_until(lock, when);
    } else {
      const std::function<void()> task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      lock.unlock();
      task();
      lock.lock();
    }
  }
}

}  // namespace rewire::serve

// SPDX-License-Identifier: Apache-2.0
//
// WorkerPool: threads that run models, made when they are needed. Alarms: one thread that calls at given
// times.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace rewire::serve {

class WorkerPool {
 public:
  explicit WorkerPool(std::size_t most_threads) : most_threads_(most_threads) {}
  // Runs what has been given, and ends the threads.
  ~WorkerPool();
  void Run(std::function<void()> task);

 private:
  void Work();

  const std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::size_t sleeping_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

class Alarms {
 public:
  using Clock = std::chrono::steady_clock;
  Alarms();
  // Tasks that are still to come are not called any more.
  ~Alarms();
  void At(Clock::time_point when, std::function<void()> task);

 private:
  void Wait();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<Clock::time_point, std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace rewire::serve

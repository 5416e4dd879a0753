// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace rewire::tools {

// One line that is written over with what is going on and for how long, once that has taken a while:
// "pack-products, 3 s". Whatever takes long shows, because a thread of its own writes it.
class StageProgress {
 public:
  // Writes to `stream` unless it is null, from `delay` after now on, as often as `interval`.
  StageProgress(std::FILE* stream, std::chrono::milliseconds delay, std::chrono::milliseconds interval);
  // Clears the line.
  ~StageProgress();
  StageProgress(const StageProgress&) = delete;
  StageProgress& operator=(const StageProgress&) = delete;

  // What goes on from now on.
  void Begin(const std::string& stage);

  // stderr where a person looks at it, otherwise null.
  static std::FILE* Terminal();

 private:
  using Clock = std::chrono::steady_clock;
  void Write();

  std::FILE* stream_;
  Clock::time_point start_ = Clock::now();
  std::chrono::milliseconds delay_, interval_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  bool written_ = false;
  std::string stage_;
  std::thread writer_;
};

}  // namespace rewire::tools

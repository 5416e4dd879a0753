// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>

#include "rewire/base/worker_thread.h"

namespace rewire::tools {

// A line that says what is going on and for how long, once that has taken a while: "pack-products, 3 s". It
// is overwritten. A separate thread writes it, so that it also shows during long steps.
class StageProgress {
 public:
  // Writes to `stream` unless it is null. Starts `delay` after now and repeats every `interval`.
  StageProgress(std::FILE* stream, std::chrono::milliseconds delay, std::chrono::milliseconds interval);
  // Clears the line.
  ~StageProgress();
  StageProgress(const StageProgress&) = delete;
  StageProgress& operator=(const StageProgress&) = delete;

  // Sets what is going on from now on.
  void Begin(const std::string& stage);

  // Returns stderr if it is a terminal, otherwise null.
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
  WorkerThread writer_;
};

}  // namespace rewire::tools

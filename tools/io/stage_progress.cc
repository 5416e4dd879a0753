// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/stage_progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace rewire::tools {

StageProgress::StageProgress(std::FILE* stream, std::chrono::milliseconds delay,
                             std::chrono::milliseconds interval)
    : stream_(stream), delay_(delay), interval_(interval) {
  const auto write = [](void* self) -> void* {
    static_cast<StageProgress*>(self)->Write();
    return nullptr;
  };
  // Without a thread there is no line.
  if (stream_ != nullptr && !writer_.Start(write, this)) stream_ = nullptr;
}

StageProgress::~StageProgress() {
  if (stream_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ends_.notify_one();
  writer_.Join();
  if (written_) fmt::print(stream_, "\r\033[K");
}

void StageProgress::Begin(const std::string& stage) {
  if (stream_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  stage_ = stage;
}

std::FILE* StageProgress::Terminal() { return isatty(STDERR_FILENO) == 1 ? stderr : nullptr; }

void StageProgress::Write() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (ends_.wait_for(lock, delay_, [this] { return ended_; })) return;
  do {
    if (stage_.empty()) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start_);
    fmt::print(stream_, "\r{}, {} s\033[K", stage_, seconds.count());
    std::fflush(stream_);
    written_ = true;
  } while (!ends_.wait_for(lock, interval_, [this] { return ended_; }));
}

}  // namespace rewire::tools

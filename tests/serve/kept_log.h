// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/serve/core/server_log.h"

namespace rewire::serve::test {

// KeptLog: keeps what a server logs.
class KeptLog : public ServerLog {
 public:
  ServerLogLevel level() const override { return level_; }
  void SetLevel(ServerLogLevel level) override { level_ = level; }
  void Write(ServerLogLevel, std::string_view text) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_ += std::string(text) + "\n";
  }
  std::string TakeText() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::atomic<ServerLogLevel> level_{ServerLogLevel::kInfo};
  std::mutex mutex_;
  std::string text_;
};

}  // namespace rewire::serve::test

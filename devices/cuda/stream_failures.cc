// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/stream_failures.h"

#include <utility>

namespace rewire::cuda {

void StreamFailures::Note(const void* stream, std::string words) {
  const std::lock_guard<std::mutex> lock(mutex_);
  words_.emplace(stream, std::move(words));
  count_.store(words_.size(), std::memory_order_release);
}

std::string StreamFailures::Take(const void* stream) {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = words_.find(stream);
  if (found == words_.end()) return {};
  std::string words = std::move(found->second);
  words_.erase(found);
  count_.store(words_.size(), std::memory_order_release);
  return words;
}

}  // namespace rewire::cuda

// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/attached_events.h"

#include <algorithm>

namespace rewire::cuda {

void AttachedEvents::AddStream(const void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_[stream];
}

void AttachedEvents::RemoveStream(const void* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = events_.find(stream);
  if (found == events_.end()) return;
  count_ -= found->second.size();
  events_.erase(found);
}

bool AttachedEvents::Attach(const void* stream, CUevent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = events_.find(stream);
  if (found == events_.end()) return false;
  found->second.push_back(event);
  ++count_;
  return true;
}

void AttachedEvents::Detach(const void* stream, CUevent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = events_.find(stream);
  if (found == events_.end()) return;
  const auto place = std::find(found->second.begin(), found->second.end(), event);
  if (place == found->second.end()) return;
  found->second.erase(place);
  --count_;
}

std::vector<CUevent> AttachedEvents::Of(const void* stream) const {
  if (count_ == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = events_.find(stream);
  return found == events_.end() ? std::vector<CUevent>() : found->second;
}

}  // namespace rewire::cuda

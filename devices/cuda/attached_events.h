// SPDX-License-Identifier: Apache-2.0
//
// Events of other streams that a stream must have waited for before its memory is anyone else's
// (RewireStreamWorkApi).
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "rewire/devices/cuda/driver_abi.h"

namespace rewire::cuda {

// Any thread may call any function.
class AttachedEvents {
 public:
  // The streams of this library. Events can be attached to them between the two calls.
  void AddStream(const void* stream);
  void RemoveStream(const void* stream);

  // False if the stream is none of this library's.
  bool Attach(const void* stream, CUevent event);
  void Detach(const void* stream, CUevent event);
  // The stream's events. It costs one load while no stream has any.
  std::vector<CUevent> Of(const void* stream) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::vector<CUevent>> events_;  // by stream
  std::atomic<std::size_t> count_{0};                   // of all events
};

}  // namespace rewire::cuda

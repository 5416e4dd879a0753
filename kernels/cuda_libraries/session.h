// SPDX-License-Identifier: Apache-2.0
//
// A kernel keeps this in its VM for NVIDIA's libraries: their handles, shared by all kernels that use one
// stream, and a plan for each of the last shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rewire/kernels/cuda_libraries/libraries.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cuda_libraries {

// The libraries' handles for one stream. Made where no work is recorded. A library that gives no handle is
// not asked again.
class Handles {
 public:
  Handles(std::int32_t device_id, void* stream) : device_id_(device_id), stream_(stream) {}
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  bool Serves(std::int32_t device_id, void* stream) const {
    return device_id_ == device_id && stream_ == stream;
  }
  void* stream() const { return stream_; }
  // Null if there is none. The mutex must be held, because several VMs may be given one stream.
  void* cublas();
  void* cudnn();
  std::mutex& mutex() { return mutex_; }

 private:
  const std::int32_t device_id_;
  void* const stream_;
  std::mutex mutex_;
  void* cublas_ = nullptr;
  void* cudnn_ = nullptr;
  bool no_cublas_ = false, no_cudnn_ = false;
};

// The handles for a stream, which live as long as a kernel keeps them.
std::shared_ptr<Handles> HandlesOf(std::int32_t device_id, void* stream);

// The state of one import in one VM. `Plan` has a `key` that is compared byte by byte.
template <typename Plan>
class Session {
 public:
  // Null if there is no memory.
  static Session* OfThisKernel() {
    auto* session = static_cast<Session*>(__rewire_kernel_api->get_slot());
    if (session != nullptr) return session;
    session = new (std::nothrow) Session();
    if (session != nullptr) {
      __rewire_kernel_api->set_slot(session, [](void* state) { delete static_cast<Session*>(state); });
    }
    return session;
  }

  Handles& Enter(std::int32_t device_id, void* stream) {
    if (handles_ == nullptr || !handles_->Serves(device_id, stream)) {
      plans_.clear();
      last_ = oldest_ = 0;
      handles_ = HandlesOf(device_id, stream);
    }
    return *handles_;
  }
  // Calls that come in turn find theirs behind the one that was found last.
  Plan* Find(const typename Plan::Key& key) {
    for (std::size_t i = 1; i <= plans_.size(); ++i) {
      const std::size_t at = (last_ + i) % plans_.size();
      if (plans_[at]->key != key) continue;
      last_ = at;
      return plans_[at].get();
    }
    return nullptr;
  }
  // In place of the oldest one, if there are too many.
  Plan* Keep(std::unique_ptr<Plan> plan) {
    if (plans_.size() < kMost) {
      last_ = plans_.size();
      plans_.push_back(std::move(plan));
    } else {
      last_ = oldest_++ % kMost;
      plans_[last_] = std::move(plan);
    }
    return plans_[last_].get();
  }

 private:
  // All calls of a kernel with the same attributes share a session, so a network's convolutions of one window
  // do.
  static constexpr std::size_t kMost = 256;
  std::shared_ptr<Handles> handles_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::size_t last_ = 0, oldest_ = 0;
};

}  // namespace rewire::kernel::cuda_libraries

// SPDX-License-Identifier: Apache-2.0
//
// What a kernel keeps in its VM for NVIDIA's libraries: their handles, shared by all kernels that use one
// stream, and a plan for each of the last shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

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
      for (std::unique_ptr<Plan>& plan : plans_) plan.reset();
      handles_ = HandlesOf(device_id, stream);
    }
    return *handles_;
  }
  Plan* Find(const typename Plan::Key& key) const {
    for (const std::unique_ptr<Plan>& plan : plans_) {
      if (plan != nullptr && plan->key == key) return plan.get();
    }
    return nullptr;
  }
  // In place of the oldest one.
  Plan* Keep(std::unique_ptr<Plan> plan) {
    std::unique_ptr<Plan>& place = plans_[next_++ % kMost];
    place = std::move(plan);
    return place.get();
  }

 private:
  static constexpr std::size_t kMost = 8;
  std::shared_ptr<Handles> handles_;
  std::unique_ptr<Plan> plans_[kMost];
  std::size_t next_ = 0;
};

}  // namespace rewire::kernel::cuda_libraries

// SPDX-License-Identifier: Apache-2.0
//
// The CUDA context that the libraries work in: the device's primary one, as in devices/cuda.
#pragma once

#include <cstdint>

namespace rewire::kernel::cuda_libraries {

// Makes the device's context the thread's while this lives. Then the one that was current before is it again:
// the thread is the host's, which may use contexts of its own.
class EnteredContext {
 public:
  explicit EnteredContext(std::int32_t device_id);
  ~EnteredContext();
  EnteredContext(const EnteredContext&) = delete;
  EnteredContext& operator=(const EnteredContext&) = delete;
  // False if the driver refuses.
  explicit operator bool() const { return entered_; }

 private:
  bool entered_ = false;
};

// Whether what is given to the stream is recorded. Nothing may be made for a library then.
bool IsRecorded(void* stream);

}  // namespace rewire::kernel::cuda_libraries

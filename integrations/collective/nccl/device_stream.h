// SPDX-License-Identifier: Apache-2.0
//
// The device of a call's tensors, and the stream of the run that makes the call.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/stream_work.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::collective {

struct DeviceStream {
  const RewireDeviceApi* api = nullptr;
  DLDevice device{};
  void* stream = nullptr;

  // Finds those of a tensor that has been checked to lie on a device of CUDA's. Fails if the run is being
  // recorded.
  static kernel::Status Of(kernel::TensorView tensor, DeviceStream* found);

  // A success, or the device's failure, of a function that has returned this code.
  kernel::Status Check(int code) const;
  // Copies on the device, in the order of `on`.
  kernel::Status Copy(void* to, const void* from, std::int64_t bytes, void* on) const;
};

}  // namespace rewire::collective

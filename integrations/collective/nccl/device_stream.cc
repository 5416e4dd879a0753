// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/device_stream.h"

#include "rewire/kernels/cuda_libraries/context.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

Status DeviceStream::Of(kernel::TensorView tensor, DeviceStream* found) {
  found->device = tensor.device();
  if (__rewire_kernel_api->device(found->device, &found->api, &found->stream) != 0)
    return Status::AlreadySet();
  // A replay would give NCCL nothing to watch, and the recorded work would end no wait for a dead rank.
  if (kernel::cuda_libraries::IsRecorded(found->stream))
    return RuntimeError("collectives cannot be recorded; run the program as it is");
  if (RewireStreamWorkOf(found->api) != nullptr && found->api->make_event != nullptr) return Status();
  return RuntimeError("the library of the device ", found->api->name,
                      " has no events, or cannot be told of failures (rewire/vm/kernel/stream_work.h)");
}

Status DeviceStream::Check(int code) const {
  if (code == REWIRE_DEVICE_OK) return Status();
  return RuntimeError("device ", api->name, ":", device.device_id, ": ", api->error(api->context));
}

Status DeviceStream::Copy(void* to, const void* from, std::int64_t bytes, void* on) const {
  if (to == from || bytes == 0) return Status();
  return Check(api->copy(api->context, to, device, from, device, static_cast<std::uint64_t>(bytes), on));
}

}  // namespace rewire::collective

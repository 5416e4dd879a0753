// SPDX-License-Identifier: Apache-2.0
//
// The CUDA context that the libraries work in: the device's primary one, as in devices/cuda.
#pragma once

#include <cstdint>

namespace rewire::kernel::cuda_libraries {

// Makes the device's context the thread's. False if the driver refuses.
bool EnterContext(std::int32_t device_id);

// Whether what is given to the stream is recorded. Nothing may be made for a library then.
bool IsRecorded(void* stream);

}  // namespace rewire::kernel::cuda_libraries

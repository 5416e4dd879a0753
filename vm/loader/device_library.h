// SPDX-License-Identifier: Apache-2.0
//
// The device libraries that Rewire comes with, by DLDeviceType.
#pragma once

#include <cstdint>

namespace rewire {

// "opencl" or "cuda"; null if Rewire comes with no library for this type.
const char* StockDeviceName(std::int32_t device_type);

}  // namespace rewire

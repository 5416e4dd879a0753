// SPDX-License-Identifier: Apache-2.0
// An entry of an executable's device table, ready for use.
#pragma once

#include "vm/device/device_api.h"
#include "vm/tensor.h"

namespace rewire {

struct LinkedDevice {
  DLDevice device = kHost;
  const DeviceApi* api = nullptr;  // null for the host
  const char* scope = "";          // memory scope; the executable's string
};

}  // namespace rewire

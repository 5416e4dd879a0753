// SPDX-License-Identifier: Apache-2.0
//
// An entry of an executable's device table, resolved.
#pragma once

#include "rewire/vm/device/device_api.h"
#include "rewire/vm/tensor.h"

namespace rewire {

struct LinkedDevice {
  DLDevice device = kHost;
  const DeviceApi* api = nullptr;  // null for the host
  const char* scope = "";          // memory scope; the executable's string
};

}  // namespace rewire

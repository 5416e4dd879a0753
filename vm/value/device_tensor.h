// SPDX-License-Identifier: Apache-2.0
// Tensors over memory that a device's driver names by handles.
#pragma once

#include "rewire/base/status.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/tensor.h"

namespace rewire {

// For a device whose tensors have the driver's handles: the tensor with an address in place of its handle,
// which it holds. Empty if it has an address already.
Result<Tensor> ImportHandle(const DeviceApi& api, const TensorView& view);

}  // namespace rewire

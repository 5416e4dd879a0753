// SPDX-License-Identifier: Apache-2.0
// Tensors over memory that a device's driver names by handles.
#pragma once

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/tensor.h"

namespace rewire {

// For a tensor on one of these devices that has a handle of the driver's: the same with an address in its
// place, which it holds. Empty for all others, which have an address already.
Result<Tensor> Imported(Span<const LinkedDevice> devices, const DLTensor& dl);

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
//
// Steps of operands over the shape that they broadcast to, with as few axes as serve.
#pragma once

#include <initializer_list>

#include "rewire/kernels/device/device_call.h"

namespace rewire::kernel::device {

// Up to three operands, for Broadcast::a, b and c. The shapes must have been checked.
Broadcast BroadcastOf(ShapeView out, std::initializer_list<ShapeView> operands);

}  // namespace rewire::kernel::device

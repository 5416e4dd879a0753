// SPDX-License-Identifier: Apache-2.0
//
// Steps of operands over the shape that they broadcast to, with as few axes as serve.
#pragma once

#include <cstring>
#include <initializer_list>

#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

// SetFlat is for operands that have the shape of the result, with so many elements.
inline void SetFlat(std::int64_t size, Broadcast* shape) {
  static constexpr Broadcast kFlat = {1, {}, {1}, {1}, {1}};
  std::memcpy(shape, &kFlat, sizeof(kFlat));
  shape->dims[0] = static_cast<int>(size);
}
// Up to three operands, for Broadcast::a, b and c. The shapes must have been checked.
Broadcast BroadcastOf(ShapeView out, std::initializer_list<ShapeView> operands);

}  // namespace rewire::kernel::device

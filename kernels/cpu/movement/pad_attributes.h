// SPDX-License-Identifier: Apache-2.0
//
// What kernels of the CPU and of devices share that put a border around a tensor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

inline PadMode ReadPadMode(Attributes& attributes) {
  return static_cast<PadMode>(attributes.Choice("mode", {"constant", "reflect", "edge", "wrap"}, 0));
}

// For modes that fill the border from x: checks that x reaches far enough. The pads are those before each
// axis, then those after each.
inline Status CheckPads(PadMode mode, ShapeView pads, ShapeView x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t dim = x[i];
    const std::int64_t most = std::max(pads[i], pads[i + x.size()]);
    const std::int64_t reach = mode == PadMode::kReflect ? dim - 1 : mode == PadMode::kWrap ? dim : most;
    if (dim > 0 && most <= reach) continue;
    return ValueError("axis ", i, " of x with shape ", x, " is too short for a pad of ", most);
  }
  return Status();
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// How the rules of shapes in kernels/contract report what does not fit.
#pragma once

#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

inline constexpr auto kShapeError = [](const auto&... parts) { return ValueError(parts...); };

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the CPU and of devices that read or write at positions that index tensors give share this.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class ScatterReduction { kNone, kAdd, kMul, kMin, kMax };

inline ScatterReduction ReadScatterReduction(Attributes& attributes) {
  return static_cast<ScatterReduction>(
      attributes.Choice("reduction", {"none", "add", "mul", "min", "max"}, 0));
}

// Checks that indices of single elements have x's rank and no larger dimensions, but along the axis.
Status CheckElementIndices(ShapeView x, ShapeView indices, int along);

// The shape of slices of x that index tuples name: [batch..., rows..., what the tuples leave of x].
Status GatherNDDims(ShapeView x, ShapeView indices, std::int64_t batch_dims, Dims* result);

}  // namespace rewire::kernel::cpu

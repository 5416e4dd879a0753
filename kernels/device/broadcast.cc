// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/broadcast.h"

#include <algorithm>

namespace rewire::kernel::device {

Broadcast BroadcastOf(ShapeView out, std::initializer_list<ShapeView> operands) {
  constexpr int kOperands = 3;
  if (std::all_of(operands.begin(), operands.end(), [&](ShapeView dims) { return dims == out; })) {
    std::int64_t size = 1;
    for (const std::int64_t dim : out) size *= dim;
    Broadcast flat;
    SetFlat(size, &flat);
    return flat;
  }
  const int rank = static_cast<int>(out.size());
  int steps[REWIRE_DEVICE_RANK][kOperands] = {};
  int operand = 0;
  for (const ShapeView dims : operands) {
    std::int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const int own = i - (rank - static_cast<int>(dims.size()));
      if (own < 0) break;
      const std::int64_t dim = dims[static_cast<std::size_t>(own)];
      steps[i][operand] = dim == 1 ? 0 : static_cast<int>(step);
      step *= dim;
    }
    ++operand;
  }
  Broadcast shape{};
  int* const of[kOperands] = {shape.a, shape.b, shape.c};
  for (int i = 0; i < rank; ++i) {
    const auto dim = static_cast<int>(out[static_cast<std::size_t>(i)]);
    if (dim == 1) continue;
    // An axis continues the one before it if all operands go on there where its last element ends.
    bool continues = shape.rank > 0;
    for (int k = 0; k < kOperands && continues; ++k) {
      continues = of[k][shape.rank - 1] == cpu::Times(steps[i][k], dim);
    }
    if (!continues) ++shape.rank;
    const int axis = shape.rank - 1;
    shape.dims[axis] = static_cast<int>(continues ? cpu::Times(shape.dims[axis], dim) : dim);
    for (int k = 0; k < kOperands; ++k) of[k][axis] = steps[i][k];
  }
  return shape;
}

}  // namespace rewire::kernel::device

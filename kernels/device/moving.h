// SPDX-License-Identifier: Apache-2.0
//
// Elements that are moved by steps along axes.
#pragma once

#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

// A move of `count` elements, with as few axes as serve. The steps of an axis lead to the next element of the
// two tensors.
struct Moving {
  Move move{};
  std::int64_t count = 1;

  void Append(std::int64_t dim, std::int64_t from_step, std::int64_t to_step);
  Status Run(TensorView x, TensorView out) const;
};

// Checks the tensors of a kernel that moves elements of x.
Status CheckMove(TensorView x, TensorView out);

// Copies x to out, which has as many elements of the same size. Does nothing if out is x.
Status CopyWhole(TensorView x, TensorView out);

}  // namespace rewire::kernel::device

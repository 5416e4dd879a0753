// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// A constant of f32[n].
inline Value* FloatsValue(Op& op, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  HostTensor tensor;
  tensor.dtype = kFloat32;
  tensor.shape = {static_cast<std::int64_t>(floats.size())};
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(floats.data()), floats.size() * sizeof(float)});
  return op.Constant(std::move(tensor));
}

}  // namespace rewire::compiler

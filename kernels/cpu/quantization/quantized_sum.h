// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels that add tensors of 8-bit integers that represent floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// How the terms and the sum represent floats.
struct QuantizedSum {
  Quantization a, b, sum;  // without a range
  std::optional<std::int32_t> least, most;

  void Read(Attributes& attributes) {
    const auto byte = [&](const char* name) {
      return static_cast<std::int32_t>(attributes.Int(name, 0, -128, 255));
    };
    for (const char* name : {"a_scale", "b_scale", "scale"}) attributes.Require(name);
    a = {static_cast<float>(attributes.Float("a_scale", 1)), byte("a_zero"), 0, 0};
    b = {static_cast<float>(attributes.Float("b_scale", 1)), byte("b_zero"), 0, 0};
    sum = {static_cast<float>(attributes.Float("scale", 1)), byte("zero"), 0, 0};
    if (attributes.Has("least")) least = byte("least");
    if (attributes.Has("most")) most = byte("most");
  }

  // The sum's, whose range is what is left of the type's range.
  Quantization SumWithin(std::int32_t least_of_type, std::int32_t most_of_type) const {
    return {sum.scale, sum.zero, std::max(least_of_type, least.value_or(least_of_type)),
            std::min(most_of_type, most.value_or(most_of_type))};
  }
};

}  // namespace rewire::kernel::cpu

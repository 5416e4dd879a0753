// SPDX-License-Identifier: Apache-2.0
// Convolutions whose channels are last.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {

struct LastChannels {
  Shape x;  // [N, H, W, C]
  std::int64_t channels;
  std::vector<std::int64_t> kernel, strides, dilations, pads;
};

inline Shape OutShape(const LastChannels& c) {
  Shape out = {c.x[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = (c.kernel[i] - 1) * c.dilations[i] + 1;
    out.push_back((c.x[i + 1] + c.pads[i] + c.pads[i + 2] - reach) / c.strides[i] + 1);
  }
  out.push_back(c.channels);
  return out;
}

}  // namespace rewire::test

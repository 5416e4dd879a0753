// SPDX-License-Identifier: Apache-2.0
// How the rows of a product, or the lines of a convolution, are cut into blocks that threads share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// What it takes to turn a sum of products of bytes into an output, in such products.
inline constexpr std::int64_t kIntegerSumWork = 64;

// How many of `count` rows make a block, by whose rows a thread multiplies one panel of weights after the
// other. One thread takes `most`, as many as stay in its second cache. Several threads take fewer, so that
// each gets several blocks also where there are few `panels`. A block has at least `least` rows.
inline std::int64_t RowsOfBlock(std::int64_t count, std::int64_t least, std::int64_t most,
                                std::int64_t panels) {
  constexpr std::int64_t kTasksOfThread = 4;
  const std::int64_t threads = __rewire_kernel_api->thread_count();
  if (threads > 1) {
    const std::int64_t blocks = (kTasksOfThread * threads + panels - 1) / std::max<std::int64_t>(1, panels);
    most = std::min(most, (count + blocks - 1) / blocks);
  }
  return std::max(least, most);
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// How the rows of a product, or the lines of a convolution, are cut into blocks that threads share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// The work of turning a sum of products of bytes into an output, in such products.
inline constexpr std::int64_t kIntegerSumWork = 64;

// How many of `count` rows make a block, by whose rows a thread multiplies one panel of weights after the
// other. One thread takes `most`, as many as stay in its second cache. Several threads take fewer, so that
// each gets several blocks also where there are few `panels`. A block has at least `least` rows.
inline constexpr std::int64_t kTasksOfThread = 4;
inline std::int64_t RowsOfBlock(std::int64_t count, std::int64_t least, std::int64_t most,
                                std::int64_t panels) {
  const std::int64_t threads = __rewire_kernel_api->thread_count();
  if (threads > 1) {
    const std::int64_t blocks = (kTasksOfThread * threads + panels - 1) / std::max<std::int64_t>(1, panels);
    most = std::min(most, (count + blocks - 1) / blocks);
  }
  return std::max(least, most);
}

// Outputs [begin, end) of a line.
struct OfLine {
  std::int64_t line, begin, end;
};

// How the lines of a convolution's output are cut where there are too few of them for all threads, as in
// convolutions of one dimension. Parts begin at a multiple of `rows`, those of a tile.
class LineParts {
 public:
  // `tasks`: with whole lines.
  LineParts(std::int64_t tasks, std::int64_t outputs, std::int64_t rows) : outputs_(outputs), rows_(rows) {
    const std::int64_t threads = __rewire_kernel_api->thread_count();
    const std::int64_t wanted = kTasksOfThread * threads;
    if (threads > 1 && tasks < wanted)
      count_ = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(1, tasks), 1,
                                        std::max<std::int64_t>(1, outputs / (kLeastTiles * rows)));
  }
  std::int64_t count() const { return count_; }
  OfLine Part(std::int64_t line, std::int64_t part) const { return {line, Begin(part), Begin(part + 1)}; }

 private:
  std::int64_t Begin(std::int64_t part) const {
    return part == count_ ? outputs_ : outputs_ * part / count_ / rows_ * rows_;
  }

  static constexpr std::int64_t kLeastTiles = 2;

  std::int64_t outputs_, rows_;
  std::int64_t count_ = 1;
};

}  // namespace rewire::kernel::cpu

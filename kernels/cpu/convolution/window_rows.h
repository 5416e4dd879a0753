// SPDX-License-Identifier: Apache-2.0
//
// The windows of a convolution as the rows of a product by tiles (tiled_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/tiled_rows.h"

namespace rewire::kernel::cpu {

// Row i is the window at output position i, from output line `line` on. Its units are the positions of the
// window, or its rows where those lie side by side, each padded to a whole unit. Positions outside of the
// image are zeros.
class WindowRows final : public TiledSource {
 public:
  // `image` is [N, spatial..., position_bytes] from its line `first_line` on. Where windows leave the image,
  // position_bytes must be whole units.
  WindowRows(const Window& window, const void* image, std::int64_t position_bytes, std::int64_t first_line,
             std::int64_t line);
  void Write(std::int64_t first, std::int64_t count, std::byte* block) const override;

 private:
  // A row of the window: positions [begin, begin + kernel) of a line, or zeros. Returns the unit behind it.
  std::int64_t WriteSegment(const std::byte* line, std::int64_t begin, std::int64_t at, std::byte* row) const;

  Window window_;
  const std::byte* image_;
  std::int64_t position_bytes_, first_line_, line_;
};

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/tile_samples.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::image {
bool TileSamples::Open(const Codestream& stream, std::uint32_t component, Canvas& canvas) {
  component_ = stream.component[component];
  all_ = SamplesIn(stream.picture, component_);
  if (component_.across == 1 && component_.down == 1) return true;
  const auto take = [&](std::int64_t count) {
    return reinterpret_cast<std::int32_t*>(
        canvas.Scratch(cpu::Times(count, std::int64_t{sizeof(std::int32_t)})));
  };
  // A tile has one row more than its own at most: the last one above it.
  const std::int64_t tallest = std::min(stream.tile_height, stream.picture.height());
  above_ = take(all_.width() + 1);
  left_ = take(tallest / component_.down + 2);
  return above_ != nullptr && left_ != nullptr;
}

bool TileSamples::EnterTile(const Rectangle& tile) {
  tile_ = tile;
  first_row_ = std::max(tile.top / component_.down, all_.top);
  const Rectangle own = SamplesIn(tile, component_);
  return own.right > all_.left && own.bottom > all_.top;
}

void TileSamples::EnterWindow(const Rectangle& window, const std::int32_t* data) {
  window_ = window;
  own_ = SamplesIn(window, component_);
  data_ = data;
}

std::int64_t TileSamples::At(std::int64_t x, std::int64_t y) const {
  return SampleAt(std::max(x / component_.across, all_.left), std::max(y / component_.down, all_.top));
}

void TileSamples::LeaveWindow() {
  if (above_ == nullptr) return;
  // The rows come first, because the row above the tile is one of them. A tile without samples leaves what
  // its neighbors have left.
  if (window_.right == tile_.right) {
    const std::int64_t begin = window_.top == tile_.top ? first_row_ : own_.top;
    for (std::int64_t row = begin; row < own_.bottom; ++row)
      left_[row - first_row_] = static_cast<std::int32_t>(SampleAt(own_.right - 1, row));
  }
  if (window_.bottom == tile_.bottom) {
    for (std::int64_t column = own_.left; column < own_.right; ++column)
      above_[column - all_.left] = static_cast<std::int32_t>(SampleAt(column, own_.bottom - 1));
  }
}

}  // namespace rewire::kernel::image

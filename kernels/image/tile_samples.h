// SPDX-License-Identifier: Apache-2.0
//
// TileSamples: the samples of one component of a JPEG 2000 picture, as its pixels have them.
//
// A sample may stand for several pixels. A pixel has the sample at its place or the last one before it, as if
// the picture were decoded whole. So the first pixels of a tile may have a sample of a tile at its left or
// above it. A tile of few pixels may have no sample of its own. The samples at the right and lower edges of
// the tiles that are decoded are kept for that.
#pragma once

#include <cstdint>

#include "rewire/kernels/image/canvas.h"
#include "rewire/kernels/image/codestream.h"

namespace rewire::kernel::image {

class TileSamples {
 public:
  // Takes memory for the edges. False if the host has none.
  bool Open(const Codestream& stream, std::uint32_t component, Canvas& canvas);

  // Begins with a tile. Tiles come row by row. False if the picture has no sample at or before this tile's
  // first pixel.
  bool EnterTile(const Rectangle& tile);
  // Begins with a window of the tile. Windows come column by column. Each begins at a multiple of 4 or where
  // the tile does, and ends at a multiple of 4 or where the tile ends. `data` has the samples in it, row by
  // row, and is not read if there are none. It must stay until LeaveWindow.
  void EnterWindow(const Rectangle& window, const std::int32_t* data);
  // The sample that the pixel (x, y) of the window has.
  std::int64_t At(std::int64_t x, std::int64_t y) const;
  // Keeps what the next tiles need.
  void LeaveWindow();

 private:
  std::int64_t SampleAt(std::int64_t column, std::int64_t row) const {
    if (column < own_.left) return left_[row - first_row_];
    if (row < own_.top) return above_[column - all_.left];
    return data_[(row - own_.top) * own_.width() + column - own_.left];
  }

  Codestream::Component component_;
  Rectangle all_;               // the samples of the picture
  Rectangle tile_, window_;     // pixels
  Rectangle own_;               // the samples in the window
  std::int64_t first_row_ = 0;  // the first row of samples that a pixel of the tile has
  const std::int32_t* data_ = nullptr;
  std::int32_t* above_ = nullptr;  // the lowest sample of each column, up to the last row of tiles
  std::int32_t* left_ = nullptr;   // the last sample of each row of the tiles at the left
};

}  // namespace rewire::kernel::image

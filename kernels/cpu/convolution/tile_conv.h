// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by packed weights with tile registers (tile_image.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/tile_image.h"
#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// The image of a convolution with weights of pairs.
TileImage PairsImage(const ImageCall& call);
// Such a convolution, if its image serves. Takes a workspace of DeclareTileImage.
[[nodiscard]] Status ConvolveByTiles(const ImageCall& call, const TileImage& image,
                                     const Activation& activation);

// Declares the workspace of images x [N, spatial..., C], if there are tiles. The other arguments are
// TileImage's.
void DeclareTileImage(WorkspaceSizes& sizes, const ImageAttributes& attributes, const DLTensor* x,
                      std::int64_t position_bytes, bool units_join);

// Multiplies the windows of `images` images by tiles, some lines of an image at once, or parts of a line if
// that is long. write(n, y, part, to) writes line y of image n, or a line outside of it, as `part` has it.
// finish_of(panel) gives what finishes successive output positions of all images: it is called with the first
// position, how many there are, and their sums. Then come the rows as tiles read them, and the first of
// these.
template <class Write, class FinishOf>
[[nodiscard]] Status MultiplyWindows(TileUnit unit, const TileImage& image, const Window& window,
                                     std::int64_t images, const void* w, std::int64_t columns,
                                     const Write& write, const FinishOf& finish_of) {
  const std::int64_t lines = window.axes[1].output, outputs = window.axes[2].output;
  const std::int64_t columns_at_once = image.ColumnsAtOnce();
  const TileImage largest = image.Columns(0, columns_at_once);
  const std::int64_t lines_at_once =
      largest.LinesAtOnce(static_cast<std::int64_t>(__rewire_kernel_api->thread_count()));
  std::byte* memory = nullptr;
  if (Status s = Workspace(largest.Bytes(lines_at_once), &memory); !s.ok()) return s;
  std::array<std::int64_t, kMostTaps> segment_at;
  const auto run = [&](std::int64_t n, std::int64_t line, std::int64_t column) {
    const TileImage part = image.Columns(column, std::min(columns_at_once, outputs - column));
    const std::int64_t count = std::min(lines_at_once, lines - line), work = part.LineBytes() / kUnitBytes;
    Status written = ParallelFor(
        part.Lines(count), GrainOf(4 * kGrain, work), [&](std::int64_t i, std::int64_t end, Pace& pace) {
          for (; i < end && pace.Spend(work); ++i)
            write(n, part.LineOfImage(i, count, line), part, memory + i * part.LineBytes());
        });
    if (!written.ok()) return written;
    const TileRows rows = part.Rows(memory, count, &segment_at);
    return MultiplyByTiles({unit, rows, part.RowCount(count), w, columns}, [&](std::int64_t panel) {
      return
          [&, finish = finish_of(panel)](std::int64_t row, std::int64_t of_block, const void* sums) mutable {
            const auto* of_row = static_cast<const std::byte*>(sums);
            part.ForEachOutput(
                row, of_block, [&](std::int64_t l, std::int64_t x, std::int64_t used, std::int64_t i) {
                  finish((n * lines + line + l) * outputs + column + x, used,
                         static_cast<const void*>(of_row + i * kPanelWidth * kUnitBytes), rows, row + i);
                });
          };
    });
  };
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t line = 0; line < lines; line += lines_at_once) {
      for (std::int64_t column = 0; column < outputs; column += columns_at_once) {
        if (Status s = run(n, line, column); !s.ok()) return s;
      }
    }
  }
  return Status();
}

}  // namespace rewire::kernel::cpu

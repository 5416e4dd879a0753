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

// A convolution with weights of pairs, which TileImage serves. Takes a workspace of DeclareTileImage.
[[nodiscard]] Status ConvolveByTiles(const ImageCall& call, const Activation& activation);

// Declares the workspace of images x [N, spatial..., C], if there are tiles. The other arguments are
// TileImage's.
void DeclareTileImage(WorkspaceSizes& sizes, const ImageAttributes& attributes, const DLTensor* x,
                      std::int64_t position_bytes, bool units_join);

// Multiplies the windows of `images` images by tiles, some lines of an image at once. write(n, y, to) writes
// line y of image n, or a line outside of it. finish(output position, count, panel, sums, rows) finishes
// successive output positions of all images.
template <class Write, class Finish>
[[nodiscard]] Status MultiplyWindows(TileUnit unit, const TileImage& image, const Window& window,
                                     std::int64_t images, const void* w, std::int64_t columns,
                                     const Write& write, const Finish& finish) {
  const std::int64_t outputs = window.axes[1].output;
  const std::int64_t at_once =
      image.LinesAtOnce(static_cast<std::int64_t>(__rewire_kernel_api->thread_count()));
  std::byte* memory = nullptr;
  if (Status s = Workspace(image.Bytes(at_once), &memory); !s.ok()) return s;
  std::array<std::int64_t, kMostTaps> segment_at;
  for (std::int64_t part = 0, parts = (outputs + at_once - 1) / at_once; part < images * parts; ++part) {
    const std::int64_t n = part / parts, first = part % parts * at_once;
    const std::int64_t count = std::min(at_once, outputs - first), work = image.LineBytes() / kUnitBytes;
    Status written = ParallelFor(
        image.Lines(count), GrainOf(4 * kGrain, work), [&](std::int64_t i, std::int64_t end, Pace& pace) {
          for (; i < end && pace.Spend(work); ++i)
            write(n, image.LineOfImage(i, count, first), memory + i * image.LineBytes());
        });
    if (!written.ok()) return written;
    const std::int64_t begin = (n * outputs + first) * window.axes[2].output;
    const TileRows rows = image.Rows(memory, count, &segment_at);
    Status multiplied = MultiplyByTiles(
        {unit, rows, image.RowCount(count), w, columns},
        [&](std::int64_t row, std::int64_t of_block, std::int64_t panel, const void* sums) {
          image.ForEachOutput(row, of_block, [&](std::int64_t output, std::int64_t used, std::int64_t i) {
            const auto* of_row = static_cast<const std::byte*>(sums) + i * kPanelWidth * kUnitBytes;
            finish(begin + output, used, panel, static_cast<const void*>(of_row), rows.From(row + i));
          });
        });
    if (!multiplied.ok()) return multiplied;
  }
  return Status();
}

}  // namespace rewire::kernel::cpu

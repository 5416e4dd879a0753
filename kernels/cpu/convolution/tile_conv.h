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
#include "rewire/kernels/cpu/support/own_places.h"
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

// A product of the windows of `images` images. write(n, y, part, to) writes line y of image n, or a line
// outside of it, as `part` has it. finish_of(panel) gives what finishes successive output positions of all
// images: it is called with the first position, how many there are, and their sums. Then come the rows as
// tiles read them, and the first of these.
template <class Write, class FinishOf>
class WindowProduct {
 public:
  WindowProduct(TileUnit unit, const TileImage& image, const Window& window, std::int64_t images,
                const void* w, std::int64_t columns, const Write& write, const FinishOf& finish_of)
      : unit_(unit),
        image_(image),
        lines_(window.axes[1].output),
        outputs_(window.axes[2].output),
        images_(images),
        w_(w),
        columns_(columns),
        write_(write),
        finish_of_(finish_of) {}

  // Takes a workspace of DeclareTileImage.
  [[nodiscard]] Status Run() const {
    const auto threads = static_cast<std::int64_t>(__rewire_kernel_api->thread_count());
    const std::int64_t own = image_.OwnLines(images_, threads);
    std::array<std::int64_t, kMostTaps> segment_at;
    const std::int64_t units = image_.Rows(nullptr, 1, &segment_at).units();
    // Each thread then reads all weights, which have to stay in its second cache.
    if (own != 0 && TileTasks::WeightBytes(units, columns_) <= TileTasks::kGroupBytes)
      return RunOwnLines(own, threads);
    return RunTogether(threads);
  }

 private:
  // Part of the output: `count` lines from `line` on, and of these the columns of `image` from `column` on.
  struct Part {
    TileImage image;
    std::int64_t n, line, count, column;
    std::byte* memory;
  };

  void WriteLines(const Part& part, std::int64_t i, std::int64_t end, Pace& pace) const {
    const std::int64_t bytes = part.image.LineBytes();
    for (; i < end && pace.Spend(bytes / kUnitBytes); ++i)
      write_(part.n, part.image.LineOfImage(i, part.count, part.line), part.image, part.memory + i * bytes);
  }

  // Gives multiply(product, finish_of) what MultiplyByTiles takes.
  template <class Multiply>
  auto Finishing(const Part& part, const Multiply& multiply) const {
    std::array<std::int64_t, kMostTaps> segment_at;
    const TileRows rows = part.image.Rows(part.memory, part.count, &segment_at);
    const std::int64_t first = (part.n * lines_ + part.line) * outputs_ + part.column;
    const TileProduct product = {unit_, rows, part.image.RowCount(part.count), w_, columns_};
    return multiply(product, [&](std::int64_t panel) {
      return [&, finish = finish_of_(panel)](std::int64_t row, std::int64_t count, const void* sums) mutable {
        const auto* of_row = static_cast<const std::byte*>(sums);
        part.image.ForEachOutput(
            row, count, [&](std::int64_t line, std::int64_t x, std::int64_t used, std::int64_t i) {
              finish(first + line * outputs_ + x, used,
                     static_cast<const void*>(of_row + i * kPanelWidth * kUnitBytes), rows, row + i);
            });
      };
    });
  }

  // Each thread writes and multiplies lines of its own.
  Status RunOwnLines(std::int64_t own, std::int64_t threads) const {
    const std::int64_t bytes = (image_.Bytes(own) + kLineBytes - 1) / kLineBytes * kLineBytes;
    std::byte* memory = nullptr;
    if (Status s = Workspace(Times(threads, bytes), &memory); !s.ok()) return s;
    OwnPlaces places(threads);
    const std::int64_t parts = (lines_ + own - 1) / own;
    std::array<std::int64_t, kMostTaps> segment_at;
    const TileTasks of_part(
        {unit_, image_.Rows(nullptr, own, &segment_at), image_.RowCount(own), w_, columns_}, true);
    return ParallelFor(
        Times(images_, parts), GrainOf(kTileTaskSteps, of_part.blocks, of_part.panels, of_part.steps),
        [&](std::int64_t task, std::int64_t end, Pace& pace) {
          const OwnPlaces::Place place(&places);
          for (; task < end && !pace.stopped(); ++task) {
            const std::int64_t line = task % parts * own;
            const Part part = {
                image_, task / parts, line, std::min(own, lines_ - line), 0, memory + place.number() * bytes};
            WriteLines(part, 0, image_.Lines(part.count), pace);
            Finishing(part, [&](const TileProduct& product, const auto& finish_of) {
              const TileTasks tasks(product, true);
              RunTileTasks(product, tasks, finish_of, 0, tasks.count, pace);
            });
          }
        });
  }

  // The threads share some lines of an image at once, or parts of a line if that is long.
  Status RunTogether(std::int64_t threads) const {
    const std::int64_t columns_at_once = image_.ColumnsAtOnce();
    const TileImage largest = image_.Columns(0, columns_at_once);
    const std::int64_t lines_at_once = largest.LinesAtOnce(threads);
    std::byte* memory = nullptr;
    if (Status s = Workspace(largest.Bytes(lines_at_once), &memory); !s.ok()) return s;
    for (std::int64_t n = 0; n < images_; ++n) {
      for (std::int64_t line = 0; line < lines_; line += lines_at_once) {
        for (std::int64_t column = 0; column < outputs_; column += columns_at_once) {
          const Part part = {image_.Columns(column, std::min(columns_at_once, outputs_ - column)),
                             n,
                             line,
                             std::min(lines_at_once, lines_ - line),
                             column,
                             memory};
          Status s = ParallelFor(
              part.image.Lines(part.count), GrainOf(4 * kGrain, part.image.LineBytes() / kUnitBytes),
              [&](std::int64_t i, std::int64_t end, Pace& pace) { WriteLines(part, i, end, pace); });
          if (!s.ok()) return s;
          s = Finishing(part, [](const TileProduct& product, const auto& finish_of) {
            return MultiplyByTiles(product, finish_of);
          });
          if (!s.ok()) return s;
        }
      }
    }
    return Status();
  }

  TileUnit unit_;
  const TileImage& image_;
  std::int64_t lines_, outputs_, images_;
  const void* w_;
  std::int64_t columns_;
  const Write& write_;
  const FinishOf& finish_of_;
};

}  // namespace rewire::kernel::cpu

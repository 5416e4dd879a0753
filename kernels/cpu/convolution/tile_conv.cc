// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/tile_conv.h"

#include <cstring>

#include "rewire/kernels/cpu/product/gemm_packed_tiles.h"
#include "rewire/kernels/cpu/product/pack_pairs.h"

namespace rewire::kernel::cpu {
namespace {

// Line y of image n, in pairs.
void WriteLine(const ImageCall& call, const TileImage& image, std::int64_t n, std::int64_t y, std::byte* to) {
  static const RoundFloats kRound = ChooseRoundFloats(true);
  const WindowAxis &rows = call.window.axes[1], &columns = call.window.axes[2];
  const std::int64_t channels = call.in_channels;
  const std::int64_t bytes = PairsOf(channels) * kUnitBytes;
  const std::int64_t line = (n * rows.input + y) * columns.input;
  const bool inside = y >= 0 && y < rows.input;
  const auto border = [&](std::int64_t count, std::byte* at) {
    std::memset(at, 0, static_cast<std::size_t>(count * bytes));
    return at + count * bytes;
  };
  // Positions of the line from x on. Both write nothing behind them.
  const auto* pairs = reinterpret_cast<const std::byte*>(call.x) + line * bytes;
  const auto copy = [&](std::int64_t x, std::int64_t count, std::byte* at) {
    std::memcpy(at, pairs + x * bytes, static_cast<std::size_t>(count * bytes));
    return at + count * bytes;
  };
  const float* floats = call.x + line * channels;
  const auto round = [&](std::int64_t x, std::int64_t count, std::byte* at) {
    kRound(floats + x * channels, count, channels, reinterpret_cast<std::uint16_t*>(at));
    return at + count * bytes;
  };
  if (image.WritesRuns()) {
    const auto spread = [](const std::byte* from, std::int64_t step, std::int64_t of_row,
                           std::int64_t rows_of_line, std::byte* at, std::int64_t to_step) {
      CopyToLines({from, step, of_row, rows_of_line, at, to_step});
    };
    if (call.x_rounded) return image.WriteRuns(inside, to, copy, border, spread);
    return image.WriteRuns(inside, to, round, border, spread);
  }
  if (call.x_rounded) {
    const auto whole = [&](std::int64_t x, std::int64_t step, std::int64_t of_rows, std::int64_t count,
                           std::byte* at) {
      CopyToLines({pairs + x * bytes, step * bytes, count * bytes, of_rows, at, image.row_bytes()});
    };
    return image.WriteLine(inside, to, whole, copy, border);
  }
  const auto whole = [&](std::int64_t x, std::int64_t step, std::int64_t of_rows, std::int64_t count,
                         std::byte* at) {
    for (std::int64_t i = 0; i < of_rows; ++i, x += step, at += image.row_bytes()) {
      if (channels % 2 == 0 || count == 1) {
        RoundToLines(floats + x * channels, count * channels, at);
      } else {
        std::byte* const end = round(x, count, at);
        const std::int64_t used = count * bytes % kLineBytes;
        if (used != 0) std::memset(end, 0, static_cast<std::size_t>(kLineBytes - used));
      }
    }
  };
  image.WriteLine(inside, to, whole, round, border);
}

}  // namespace

TileImage PairsImage(const ImageCall& call) {
  return TileImage(call.window, Times(PairsOf(call.in_channels), kUnitBytes), PanelCount(call.out_channels),
                   false);
}

Status ConvolveByTiles(const ImageCall& call, const TileImage& image, const Activation& activation) {
  RowsByPanels product{};
  product.columns = call.out_channels;
  product.bias = call.bias;
  product.addend = call.addend;
  product.activation = activation;
  product.out = call.out;
  product.rounded = call.rounded;
  const auto write = [&](std::int64_t n, std::int64_t y, const TileImage& part, std::byte* to) {
    WriteLine(call, part, n, y, to);
  };
  const auto finish_of = [&](std::int64_t panel) { return TiledPairsFinish(product, panel); };
  return WindowProduct(TileUnit::kPairs, image, call.window, call.images, call.w, call.out_channels, write,
                       finish_of)
      .Run();
}

void DeclareTileImage(WorkspaceSizes& sizes, const ImageAttributes& attributes, const DLTensor* x,
                      std::int64_t position_bytes, bool units_join) {
  if (!HasTiles()) return;
  Dims first;  // [N, C, spatial...]
  first.push_back(x->shape[0]);
  first.push_back(x->shape[x->ndim - 1]);
  for (int i = 1; i + 1 < x->ndim; ++i) first.push_back(x->shape[i]);
  Window window;
  std::int64_t most = 0;
  if (attributes.window.Resolve(first.view(), &window).ok()) {
    // A call with smaller images may leave out axes by which the window does not move.
    for (int left_out = 0; left_out < kMaxSpatial; ++left_out) {
      Window of_call = window;
      bool fits = true;
      for (int i = kMaxSpatial - left_out; i < kMaxSpatial; ++i) {
        fits = fits && of_call.axes[i].kernel == 1;
        of_call.axes[i] = WindowAxis();
      }
      MakeLinesLong(&of_call);
      const TileImage image(of_call, position_bytes, PanelCount(attributes.channels), units_join);
      if (fits && image.Serves()) most = std::max(most, image.MostBytes());
    }
  }
  sizes.Take(std::max<std::int64_t>(1, most), 1);
}

}  // namespace rewire::kernel::cpu

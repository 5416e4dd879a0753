// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/tile_image.h"

#include <algorithm>

namespace rewire::kernel::cpu {
namespace {

// Bytes that stay in the second cache, with one thread and with any number.
constexpr std::int64_t kCache = 1 << 19, kMostCache = 4 * kCache;

constexpr std::int64_t LinesOf(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

}  // namespace

TileImage::TileImage(const Window& window, std::int64_t position_bytes, std::int64_t panels, bool units_join)
    : window_(window), position_bytes_(position_bytes) {
  const WindowAxis& axis = window.axes[2];
  // In cycles for each output position. Reading and multiplying a line by a panel takes two, writing one
  // four.
  const std::int64_t wide_lines = LinesOf(axis.kernel * position_bytes);
  const std::int64_t narrow_lines = LinesOf(position_bytes);
  const std::int64_t rows = window.axes[1].kernel;
  const std::int64_t wide = 2 * panels * rows * wide_lines + 4 * wide_lines;
  const std::int64_t narrow = 2 * panels * rows * axis.kernel * narrow_lines + 4 * narrow_lines;
  const bool whole_units = position_bytes % kUnitBytes == 0 || !units_join || axis.kernel == 1;
  wide_ = axis.stride != 1 || !whole_units || wide < narrow || Times(rows, axis.kernel) > kMostTaps;
  columns_ = wide_ ? axis.output : std::max(axis.before + axis.input, axis.output - 1 + axis.reach());
  row_bytes_ = TileRowBytes(OfPosition());
}

std::int64_t TileImage::LinesAtOnce(std::int64_t threads) const {
  const WindowAxis& rows = window_.axes[1];
  const std::int64_t bytes = threads == 1 ? kCache : kMostCache;
  const std::int64_t of_line = std::max<std::int64_t>(1, Times(rows.stride, LineBytes()));
  return std::clamp<std::int64_t>(bytes / of_line - (rows.reach() - 1) / rows.stride, 1,
                                  std::max<std::int64_t>(1, rows.output));
}

std::int64_t TileImage::Lines(std::int64_t output_lines) const {
  const WindowAxis& rows = window_.axes[1];
  return Times(rows.stride, output_lines + (rows.reach() - 1) / rows.stride);
}

std::int64_t TileImage::Bytes(std::int64_t output_lines) const {
  return Plus(Times(Lines(output_lines), LineBytes()), BytesBehind());
}

std::int64_t TileImage::MostBytes() const {
  const std::int64_t all = Times(Lines(window_.axes[1].output), LineBytes());
  return Plus(std::min(all, std::max(kMostCache, Times(Lines(1), LineBytes()))), BytesBehind());
}

std::int64_t TileImage::LineOfImage(std::int64_t i, std::int64_t output_lines, std::int64_t first) const {
  const WindowAxis& rows = window_.axes[1];
  const std::int64_t of_phase = Lines(output_lines) / rows.stride;
  return (first + i % of_phase) * rows.stride + i / of_phase - rows.before;
}

TileRows TileImage::Rows(const std::byte* image, std::int64_t output_lines,
                         std::array<std::int64_t, kMostTaps>* segment_at) const {
  const WindowAxis &rows = window_.axes[1], &axis = window_.axes[2];
  const std::int64_t of_phase = Lines(output_lines) / rows.stride;
  std::int64_t segments = 0;
  for (std::int64_t ky = 0; ky < rows.kernel; ++ky) {
    const std::int64_t shift = ky * rows.dilation;
    const std::int64_t line = shift % rows.stride * of_phase + shift / rows.stride;
    for (std::int64_t kx = 0; kx < (wide_ ? 1 : axis.kernel); ++kx)
      (*segment_at)[static_cast<std::size_t>(segments++)] =
          (line * columns_ + kx * axis.dilation) * row_bytes_;
  }
  return {image, row_bytes_, segments, segment_at->data(), UnitsOf(OfPosition())};
}

}  // namespace rewire::kernel::cpu

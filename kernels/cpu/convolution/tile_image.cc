// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/tile_image.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/own_places.h"

namespace rewire::kernel::cpu {
namespace {

// Bytes that stay in the second cache, with one thread and with any number.
constexpr std::int64_t kCache = 1 << 19, kMostCache = 4 * kCache;

// With windows that reach farther, rows of tiles that are no output would outnumber those that are.
constexpr std::int64_t kMostReach = 64;

constexpr std::int64_t LinesOf(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

}  // namespace

TileImage::TileImage(const Window& window, std::int64_t position_bytes, std::int64_t panels, bool units_join)
    : window_(window), position_bytes_(position_bytes) {
  const WindowAxis& axis = window.axes[2];
  // Reading and multiplying a line by a panel takes two cycles. Writing one takes four, or two in long runs.
  const std::int64_t wide_lines = LinesOf(Times(axis.kernel, position_bytes));
  const std::int64_t narrow_lines = LinesOf(position_bytes);
  const std::int64_t rows = window.axes[1].kernel, written = (units_join ? 4 : 2) * window.axes[1].stride;
  const std::int64_t wide = Plus(Times(2 * panels, rows, wide_lines), Times(written, wide_lines));
  const std::int64_t narrow =
      Plus(Times(2 * panels, rows, axis.kernel, narrow_lines), Times(written, narrow_lines));
  const bool whole_units = position_bytes % kUnitBytes == 0 || !units_join || axis.kernel == 1;
  wide_ = axis.stride != 1 || !whole_units || wide < narrow || Times(rows, axis.kernel) > kMostTaps ||
          axis.reach() > kMostReach;
  cycles_ = wide_ ? wide : narrow;
  columns_ = ColumnsOf(axis.output);
  row_bytes_ = TileRowBytes(OfPosition());
}

bool TileImage::Serves() const {
  const WindowAxis& planes = window_.axes[0];
  return planes.input == 1 && planes.output == 1 && planes.kernel == 1 &&
         Times(Lines(1), ColumnsOf(kBlockRows), row_bytes_) <= 4 * kMostCache;
}

std::int64_t TileImage::ColumnsAtOnce() const {
  const std::int64_t output = window_.axes[2].output;
  const std::int64_t room = kMostCache / std::max<std::int64_t>(1, Times(Lines(1), row_bytes_));
  return std::clamp(room - (ColumnsOf(1) - 1), std::min(kBlockRows, output), output);
}

TileImage TileImage::Columns(std::int64_t first, std::int64_t count) const {
  TileImage part = *this;
  WindowAxis& axis = part.window_.axes[2];
  axis.before -= first * axis.stride;
  axis.output = count;
  part.columns_ = part.ColumnsOf(count);
  return part;
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

std::int64_t TileImage::OwnLines(std::int64_t images, std::int64_t threads) const {
  const WindowAxis& rows = window_.axes[1];
  if (threads <= 1 || threads > OwnPlaces::kMost || ColumnsAtOnce() != window_.axes[2].output) return 0;
  const std::int64_t of_line = std::max<std::int64_t>(1, Times(rows.stride, LineBytes()));
  const std::int64_t shared = (rows.reach() - 1) / rows.stride;  // with the next part
  const std::int64_t room = (MostBytes() / threads / kLineBytes * kLineBytes - BytesBehind()) / of_line;
  const std::int64_t most = std::min(room - shared, LinesAtOnce(1));
  if (most < 1) return 0;
  std::int64_t parts = (rows.output + most - 1) / most;
  while (parts < rows.output && parts * (images % threads) % threads != 0) ++parts;
  const std::int64_t own = (rows.output + parts - 1) / parts;
  return own >= 2 * shared ? own : 0;
}

std::int64_t TileImage::MostBytes() const {
  const std::int64_t all = Times(Lines(window_.axes[1].output), LineBytes());
  const std::int64_t columns = ColumnsOf(std::min(kBlockRows, window_.axes[2].output));
  const std::int64_t one =
      Plus(std::min(all, std::max(kMostCache, Times(Lines(1), columns, row_bytes_))), BytesBehind());
  // Threads with images of their own need what these have behind them, and lines of two of them.
  const std::int64_t of_own = Plus(BytesBehind(), Times(Lines(1), LineBytes()));
  return Plus(one, std::min(kMostCache, Times(OwnPlaces::kMost, of_own)));
}

// A wide line can be made from a narrow one at its end if no position of the image is skipped: what is read
// then stays ahead of what is written.
bool TileImage::WritesRuns() const {
  const WindowAxis& axis = window_.axes[2];
  return wide_ ? axis.dilation == 1 && axis.kernel >= axis.stride : row_bytes_ == position_bytes_;
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

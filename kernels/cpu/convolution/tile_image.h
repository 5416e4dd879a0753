// SPDX-License-Identifier: Apache-2.0
//
// An image as products by tiles read it (product/tiles/tiles.h). It has its border, so the windows of
// successive output positions lie at equal distances. So rows of tiles are read where they lie.
//
// A position of this image holds one position of the original, or in the wide form all that a row of the
// window reads, side by side. The wide form is larger, but wastes less of a line of 64 bytes if there are few
// channels, and it can skip positions. The lines are sorted by their remainder modulo the stride, so that the
// lines that a window reads are the same distance apart for all output lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

class TileImage {
 public:
  // For windows of two axes over images of `position_bytes` a position. `panels` are those of the weights. If
  // `units_join`, the weights of a row of the window are padded to units as one piece, else each position.
  TileImage(const Window& window, std::int64_t position_bytes, std::int64_t panels, bool units_join);

  // Whether it has a form for such windows, and one that is not much larger than what they read. A window
  // whose positions lie far apart would have many lines or columns between them.
  bool Serves() const;

  bool wide() const { return wide_; }
  // The cycles that it takes about for each output position, without what follows the sums.
  std::int64_t cycles() const { return cycles_; }
  // The output positions of a line that are computed at once: all of them, unless lines are very long.
  std::int64_t ColumnsAtOnce() const;
  // The same image for `count` output positions of each line alone, from position `first` on.
  TileImage Columns(std::int64_t first, std::int64_t count) const;
  // The output lines of one image that are computed at once.
  std::int64_t LinesAtOnce(std::int64_t threads) const;
  // If each of several threads has an image of its own with a part of the lines, how many output lines that
  // has; else 0. Together these images take no more than MostBytes, and each thread gets as many of them as
  // the others. Windows may reach into several parts: their lines are written for each.
  std::int64_t OwnLines(std::int64_t images, std::int64_t threads) const;
  // The bytes that so many output lines need.
  std::int64_t Bytes(std::int64_t output_lines) const;
  // The most memory that it takes with any number of threads, if so many columns and lines are computed at
  // once, for this image and all smaller ones.
  std::int64_t MostBytes() const;

  // The lines of `output_lines` output lines: how many, and which line of the image, or outside of it, line i
  // holds if the first output line is `first`.
  std::int64_t Lines(std::int64_t output_lines) const;
  std::int64_t LineOfImage(std::int64_t i, std::int64_t output_lines, std::int64_t first) const {
    const WindowAxis& rows = window_.axes[1];
    if (rows.stride == 1) return first + i - rows.before;
    const std::int64_t of_phase = Lines(output_lines) / rows.stride;
    return (first + i % of_phase) * rows.stride + i / of_phase - rows.before;
  }
  std::int64_t LineBytes() const { return Times(columns_, row_bytes_); }

  std::int64_t row_bytes() const { return row_bytes_; }
  // Writes a line, of zeros and borders if not `inside` the image. whole(x, step, rows, count, to) writes
  // `rows` rows, row_bytes() apart. Row i has `count` positions of the line from x + i * step on, all inside,
  // and behind them zeros up to a whole line of 64 bytes. piece(x, count, to) writes positions that are
  // inside, and border(count, to) those of the border. Both return what is behind it.
  template <class Whole, class Piece, class Border>
  void WriteLine(bool inside, std::byte* to, const Whole& whole, const Piece& piece,
                 const Border& border) const;

  // Whether WriteRuns may take the place of WriteLine, which is slower.
  bool WritesRuns() const;
  // Writes the same line in long runs: run(x, count, to) writes `count` positions from x on and border(count,
  // to) as many of the border. Both write nothing else, and return what is behind it. A wide line is written
  // narrow first, at its own end. spread(from, step, bytes, count, to, to_step) then copies `bytes` from
  // every `step` to every `to_step`, and writes zeros behind them up to a whole line of 64 bytes. What it
  // reads may lie in what it writes, but never before it.
  template <class Run, class Border, class Spread>
  void WriteRuns(bool inside, std::byte* to, const Run& run, const Border& border,
                 const Spread& spread) const;

  // The windows of `output_lines` output lines. `segment_at` must live as long as the result.
  TileRows Rows(const std::byte* image, std::int64_t output_lines,
                std::array<std::int64_t, kMostTaps>* segment_at) const;
  // The rows that contain all output positions of so many lines, with rows in between that are none.
  std::int64_t RowCount(std::int64_t output_lines) const {
    return (output_lines - 1) * columns_ + window_.axes[2].output;
  }
  // Calls body(line, x, count, first of the rows) for the output positions among the rows [row, row + count):
  // `count` positions of an output line from x on.
  template <class Body>
  void ForEachOutput(std::int64_t row, std::int64_t count, const Body& body) const {
    const std::int64_t outputs = window_.axes[2].output;
    std::int64_t line = row / columns_, x = row % columns_;
    for (std::int64_t i = 0; i < count; x = 0, ++line) {
      const std::int64_t used = std::min(count - i, outputs - x);
      if (used > 0) body(line, x, used, i);
      i += columns_ - x;
    }
  }

 private:
  std::int64_t OfPosition() const {
    return wide_ ? Times(window_.axes[2].kernel, position_bytes_) : position_bytes_;
  }

  // The positions of a line that so many successive windows read.
  std::int64_t ColumnsOf(std::int64_t outputs) const {
    return wide_ ? outputs : Plus(outputs, window_.axes[2].reach() - 1);
  }
  // Behind the last line, windows of rows that are no output reach further, and so do the last rows of a
  // tile.
  std::int64_t BytesBehind() const {
    return Times(Plus(kBlockRows, wide_ ? 0 : window_.axes[2].reach()), row_bytes_);
  }

  Window window_;
  std::int64_t position_bytes_;
  bool wide_ = false;
  std::int64_t cycles_ = 0;
  std::int64_t columns_ = 0, row_bytes_ = 0;  // of a line, and of a position in it
};

template <class Whole, class Piece, class Border>
void TileImage::WriteLine(bool inside, std::byte* to, const Whole& whole, const Piece& piece,
                          const Border& border) const {
  const WindowAxis& axis = window_.axes[2];
  const std::int64_t count = wide_ ? axis.kernel : 1, dilation = wide_ ? axis.dilation : 1;
  const std::int64_t step = wide_ ? axis.stride : 1;
  // Column `column`, which is not whole.
  const auto write = [&](std::int64_t column) {
    std::byte* const row = to + column * row_bytes_;
    std::byte* at = row;
    for (std::int64_t k = 0, run; k < count; k += run) {
      const std::int64_t x = column * step - axis.before + k * dilation;
      const bool is_inside = inside && x >= 0 && x < axis.input;
      // Positions side by side go together.
      const std::int64_t end = is_inside ? axis.input : x < 0 && inside ? 0 : x + count;
      run = dilation == 1 ? std::min(count - k, end - x) : 1;
      at = is_inside ? piece(x, run, at) : border(run, at);
    }
    std::fill(at, row + row_bytes_, std::byte{0});
  };
  if (!inside) {
    if (columns_ > 0) write(0);
    for (std::int64_t column = 1; column < columns_; ++column)
      std::copy_n(to, row_bytes_, to + column * row_bytes_);
    return;
  }
  // The columns [first, last) are whole.
  std::int64_t first = columns_, last = columns_;
  if (dilation == 1) {
    const std::int64_t room = axis.input + axis.before - count;
    first = std::min(columns_, axis.before <= 0 ? 0 : (axis.before + step - 1) / step);
    last = std::max(first, room < 0 ? 0 : std::min(columns_, room / step + 1));
  }
  for (std::int64_t column = 0; column < first; ++column) write(column);
  if (first < last) whole(first * step - axis.before, step, last - first, count, to + first * row_bytes_);
  for (std::int64_t column = last; column < columns_; ++column) write(column);
}

template <class Run, class Border, class Spread>
void TileImage::WriteRuns(bool inside, std::byte* to, const Run& run, const Border& border,
                          const Spread& spread) const {
  const WindowAxis& axis = window_.axes[2];
  const std::int64_t step = wide_ ? axis.stride : 1, begin = wide_ ? axis.start(0) : -axis.before;
  const std::int64_t end = begin + (columns_ - 1) * step + (wide_ ? axis.kernel : 1);
  // The positions of the line that are in the image.
  const std::int64_t first = inside ? std::min(end, std::clamp<std::int64_t>(begin, 0, axis.input)) : begin;
  const std::int64_t last = inside ? std::max(first, std::min(end, axis.input)) : begin;
  std::byte* const narrow = to + LineBytes() - (end - begin) * position_bytes_;
  std::byte* at = border(std::max<std::int64_t>(0, first - begin), narrow);
  if (first < last) at = run(first, last - first, at);
  border(end - std::max(begin, last), at);
  if (wide_) spread(narrow, step * position_bytes_, OfPosition(), columns_, to, row_bytes_);
}

}  // namespace rewire::kernel::cpu

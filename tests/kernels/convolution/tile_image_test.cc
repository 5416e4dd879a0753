// SPDX-License-Identifier: Apache-2.0
// Rows of tiles read a convolution's image, on any CPU: each output's row holds its window.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "rewire/kernels/cpu/convolution/tile_image.h"
#include "rewire/kernels/cpu/support/own_places.h"

namespace rewire::test {
namespace {

using namespace rewire::kernel::cpu;

struct Axis {
  std::int64_t input, kernel, stride, dilation, before, after;
};

WindowAxis Resolved(const Axis& axis) {
  WindowAxis window;
  window.kernel = axis.kernel;
  window.stride = axis.stride;
  window.dilation = axis.dilation;
  window.before = axis.before;
  window.after = axis.after;
  window.input = axis.input;
  window.output = (axis.input + axis.before + axis.after - window.reach()) / axis.stride + 1;
  return window;
}

// The byte b of the position (y, x). Never 0, which pads, and never kBorder.
constexpr std::byte kBorder{255};
std::byte Of(std::int64_t y, std::int64_t x, std::int64_t b) {
  return static_cast<std::byte>(1 + (y * 89 + x * 23 + b * 7) % 250);
}

bool runs_are_written = false;

// A vector at a time, as on CPUs with tiles.
void Spread(const std::byte* from, std::int64_t step, std::int64_t bytes, std::int64_t count, std::byte* to,
            std::int64_t to_step) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t b = 0; b < bytes; b += kLineBytes) {
      std::array<std::byte, kLineBytes> vector = {};
      std::memcpy(vector.data(), from + i * step + b,
                  static_cast<std::size_t>(std::min(kLineBytes, bytes - b)));
      std::memcpy(to + i * to_step + b, vector.data(), vector.size());
    }
  }
}

// `lines` output lines at once, from position `column` of each on. A position of the image has so many bytes.
void CheckImage(const Window& window, const TileImage& whole_image, std::int64_t bytes, std::int64_t lines,
                std::int64_t column, std::int64_t positions) {
  const TileImage image = whole_image.Columns(column, positions);
  const WindowAxis &rows = window.axes[1], &columns = window.axes[2];
  INFO("kernel " << rows.kernel << " by " << columns.kernel << ", " << bytes << " bytes, wide "
                 << image.wide());
  for (std::int64_t first = 0; first < rows.output; first += lines) {
    const std::int64_t count = std::min(lines, rows.output - first);
    const auto size = static_cast<std::size_t>(image.Bytes(count));
    REQUIRE(image.Bytes(count) <= whole_image.MostBytes());
    std::vector<std::byte> memory(size, std::byte{0});
    for (std::int64_t i = 0; i < image.Lines(count); ++i) {
      const std::int64_t y = image.LineOfImage(i, count, first);
      const auto piece = [&](std::int64_t x, std::int64_t of_piece, std::byte* at) {
        if (of_piece <= 0 || y < 0 || y >= rows.input || x < 0 || x + of_piece > columns.input)
          FAIL("a piece of " << of_piece << " at " << y << ", " << x << " lies outside of the image");
        for (std::int64_t p = 0; p < of_piece; ++p) {
          for (std::int64_t b = 0; b < bytes; ++b) *at++ = Of(y, x + p, b);
        }
        return at;
      };
      const auto whole = [&](std::int64_t x, std::int64_t step, std::int64_t of_rows, std::int64_t of_row,
                             std::byte* at) {
        for (std::int64_t n = 0; n < of_rows; ++n) piece(x + n * step, of_row, at + n * image.row_bytes());
      };
      const auto border = [&](std::int64_t of_piece, std::byte* at) {
        REQUIRE(of_piece > 0);
        std::memset(at, static_cast<int>(kBorder), static_cast<std::size_t>(of_piece * bytes));
        return at + of_piece * bytes;
      };
      const bool inside = y >= 0 && y < rows.input;
      std::byte* line = memory.data() + i * image.LineBytes();
      image.WriteLine(inside, line, whole, piece, border);
      if (!image.WritesRuns()) continue;
      const std::vector<std::byte> pieces(line, line + image.LineBytes());
      std::fill_n(line, image.LineBytes(), std::byte{0});
      const auto borders = [&](std::int64_t of_run, std::byte* at) {
        std::fill_n(at, of_run * bytes, kBorder);
        return at + of_run * bytes;
      };
      image.WriteRuns(inside, line, piece, borders, Spread);
      runs_are_written = true;
      REQUIRE(std::equal(pieces.begin(), pieces.end(), line));
    }
    std::array<std::int64_t, kMostTaps> segment_at;
    const TileRows tile_rows = image.Rows(memory.data(), count, &segment_at);
    std::int64_t seen = 0;
    const std::int64_t all = image.RowCount(count);
    for (std::int64_t row = 0; row < all; row += kBlockRows) {
      image.ForEachOutput(
          row, std::min(kBlockRows, all - row),
          [&](std::int64_t line, std::int64_t x_of_line, std::int64_t used, std::int64_t i) {
            for (std::int64_t n = 0; n < used; ++n) {
              if (line * positions + x_of_line + n != seen++) FAIL("output " << seen - 1 << " is not next");
              const std::int64_t oy = first + line, ox = column + x_of_line + n;
              const std::byte* from = tile_rows.from + (row + i + n) * tile_rows.row_bytes;
              // Whether byte b of tap (ky, kx) is where the weights expect it.
              const auto check = [&](std::int64_t ky, std::int64_t kx, std::int64_t b, std::byte found) {
                const std::int64_t y = rows.start(oy) + ky * rows.dilation,
                                   x = columns.start(ox) + kx * columns.dilation;
                const bool inside = y >= 0 && y < rows.input && x >= 0 && x < columns.input;
                if (found != (inside ? Of(y, x, b) : kBorder))
                  FAIL("output " << oy << ", " << ox << ", tap " << ky << ", " << kx << ", byte " << b);
              };
              const std::int64_t per_row = image.wide() ? 1 : columns.kernel;
              if (tile_rows.segments != rows.kernel * per_row ||
                  tile_rows.depth != UnitsOf(image.wide() ? columns.kernel * bytes : bytes))
                FAIL("there are " << tile_rows.segments << " segments of " << tile_rows.depth << " units");
              for (std::int64_t s = 0; s < tile_rows.segments; ++s) {
                const std::byte* segment = from + segment_at[static_cast<std::size_t>(s)];
                const std::int64_t used_bytes = image.wide() ? columns.kernel * bytes : bytes;
                for (std::int64_t b = 0; b < used_bytes; ++b)
                  check(s / per_row, image.wide() ? b / bytes : s % per_row, b % bytes, segment[b]);
                for (std::int64_t b = used_bytes; b % kLineBytes != 0; ++b)
                  if (segment[b] != std::byte{0})
                    FAIL("output " << oy << ", " << ox << ", byte " << b << " is no padding");
                if (segment_at[static_cast<std::size_t>(s)] % kLineBytes != 0)
                  FAIL("segment " << s << " begins within a line");
              }
            }
          });
    }
    REQUIRE(seen == count * positions);
    // All that the last tile reads is in the memory.
    const std::int64_t last = (all + kBlockRows - 1) / kBlockRows * kBlockRows * tile_rows.row_bytes;
    const std::int64_t behind = (tile_rows.depth + kLineUnits - 1) / kLineUnits * kLineBytes;
    REQUIRE(static_cast<std::size_t>(last - tile_rows.row_bytes +
                                     segment_at[static_cast<std::size_t>(tile_rows.segments - 1)] + behind) <=
            size);
  }
}

}  // namespace

TEST_CASE("rows of tiles hold the windows of a convolution") {
  const Axis rows[] = {
      {9, 3, 1, 1, 1, 1}, {9, 1, 1, 1, 0, 0}, {12, 3, 2, 1, 1, 0}, {14, 3, 3, 2, 2, 4}, {11, 5, 1, 2, 0, 3}};
  const Axis columns[] = {{13, 3, 1, 1, 1, 1}, {40, 1, 1, 1, 0, 0}, {13, 3, 2, 1, 1, 1}, {15, 3, 1, 2, 2, 2},
                          {9, 2, 3, 3, 4, 0},  {3, 7, 1, 1, 3, 3},  {1, 1, 1, 1, 0, 0},  {2, 3, 1, 1, 9, 9}};
  bool both[2] = {};
  for (const Axis& of_rows : rows) {
    for (const Axis& of_columns : columns) {
      Window window;
      window.rank = 2;
      window.axes[1] = Resolved(of_rows);
      window.axes[2] = Resolved(of_columns);
      for (const std::int64_t bytes : {3, 4, 16, 36, 64, 130}) {
        for (const bool join : {false, true}) {
          // Without a join, positions are whole units.
          if (!join && bytes % kUnitBytes != 0) continue;
          for (const std::int64_t panels : {1, 8}) {
            const TileImage image(window, bytes, panels, join);
            REQUIRE(image.Serves());
            both[image.wide() ? 1 : 0] = true;
            const std::int64_t outputs = window.axes[2].output, half = (outputs + 1) / 2;
            for (const std::int64_t lines : {1, 4}) CheckImage(window, image, bytes, lines, 0, outputs);
            CheckImage(window, image, bytes, 2, 0, half);
            if (half < outputs) CheckImage(window, image, bytes, 2, half, outputs - half);
          }
        }
      }
    }
  }
  CHECK(both[0]);
  CHECK(both[1]);
  CHECK(runs_are_written);
}

TEST_CASE("what tiles take grows with the lines that are read, multiplied and written") {
  const auto cycles = [](std::int64_t stride, std::int64_t bytes, std::int64_t panels) {
    Window window;
    window.axes[1] = window.axes[2] = Resolved({32, 3, stride, 1, 1, 1});
    return TileImage(window, bytes, panels, true).cycles();
  };
  // For each of three rows of the window and each panel two, and four to write a line.
  CHECK(cycles(1, 16, 1) == 3 * 2 + 4);
  CHECK(cycles(1, 16, 4) == 4 * 3 * 2 + 4);
  // Two lines of the image are written for a line of the output.
  CHECK(cycles(2, 3, 1) == 3 * 2 + 2 * 4);
  // All nine positions read a line of their own.
  CHECK(cycles(1, 64, 1) == 9 * 2 + 4);
}

// The bytes that a convolution takes for its image.
std::int64_t TakenBy(const TileImage& image, std::int64_t threads) {
  const TileImage part = image.Columns(0, image.ColumnsAtOnce());
  return part.Bytes(part.LinesAtOnce(threads));
}

TEST_CASE("what smaller images take is no more than what the largest is said to take") {
  for (const std::int64_t kernel : {1, 3, 7}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t bytes : {4, 64, 200}) {
        const auto image = [&](std::int64_t height, std::int64_t width) {
          Window window;
          window.axes[1] = Resolved({height, kernel, stride, 1, kernel / 2, kernel / 2});
          window.axes[2] = Resolved({width, kernel, stride, 1, kernel / 2, kernel / 2});
          return TileImage(window, bytes, 2, false);
        };
        const std::int64_t most = image(700, 30000).MostBytes();
        for (std::int64_t height = 7; height <= 700; height += 77) {
          for (std::int64_t width = 7; width <= 30000; width += width < 900 ? 19 : 1777) {
            const TileImage smaller = image(height, width);
            for (const std::int64_t threads : {1, 2}) REQUIRE(TakenBy(smaller, threads) <= most);
            REQUIRE(smaller.MostBytes() <= most);
          }
        }
      }
    }
  }
}

TEST_CASE("threads get as many lines of their own, in no more memory") {
  bool any = false;
  for (const std::int64_t kernel : {1, 3, 7}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t height : {1, 2, 9, 48, 200}) {
        for (const std::int64_t width : {1, 40, 3000}) {
          Window window;
          window.axes[1] = Resolved({height + kernel, kernel, stride, 1, kernel / 2, kernel / 2});
          window.axes[2] = Resolved({width + kernel, kernel, stride, 1, kernel / 2, kernel / 2});
          const TileImage image(window, 36, 1, true);
          const std::int64_t lines = window.axes[1].output;
          CHECK(image.OwnLines(1, 1) == 0);
          CHECK(image.OwnLines(1, OwnPlaces::kMost + 1) == 0);
          for (std::int64_t threads = 2; threads <= OwnPlaces::kMost; ++threads) {
            for (const std::int64_t images : {1, 2, 3}) {
              CAPTURE(kernel, stride, height, width, threads, images);
              const std::int64_t own = image.OwnLines(images, threads);
              if (own == 0) continue;
              any = true;
              REQUIRE((own > 0 && own <= lines));
              const std::int64_t bytes = (image.Bytes(own) + kLineBytes - 1) / kLineBytes * kLineBytes;
              REQUIRE(threads * bytes <= image.MostBytes());
              // With the last part of each image smaller than the others, none may be empty.
              REQUIRE((lines + own - 1) / own * own - lines < own);
            }
          }
        }
      }
    }
  }
  CHECK(any);
  // 48 lines of two images, for two threads and for three.
  Window window;
  window.axes[1] = Resolved({48, 3, 1, 1, 1, 1});
  window.axes[2] = Resolved({40, 3, 1, 1, 1, 1});
  const TileImage image(window, 16, 1, true);
  CHECK(image.OwnLines(2, 2) == 24);
  CHECK(image.OwnLines(2, 3) == 16);
}

TEST_CASE("long lines are computed in parts, and windows with much in between are not served") {
  const auto signal = [](std::int64_t length, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation) {
    Window window;
    window.axes[2] = Resolved({length, kernel, stride, dilation, 0, (kernel - 1) * dilation});
    return TileImage(window, 128, 2, false);
  };
  constexpr std::int64_t kMost = 4 << 20;
  CHECK(TakenBy(signal(1000000, 16, 8, 1), 2) < kMost);
  CHECK(TakenBy(signal(1000000, 3, 1, 1), 2) < kMost);
  CHECK(TakenBy(signal(2000, 3, 1, 4000000), 2) < kMost);  // in the wide form, which has taps alone
  CHECK(signal(2000, 3, 1, 4000000).Serves());
  Window far;
  far.axes[1] = Resolved({30, 3, 1, 2000000, 2000000, 2000000});
  far.axes[2] = Resolved({30, 3, 1, 1, 1, 1});
  CHECK_FALSE(TileImage(far, 128, 2, false).Serves());
}

}  // namespace rewire::test

// SPDX-License-Identifier: Apache-2.0
//
// The first directory of a TIFF, and the file that libtiff sees in place of the given one: the same bytes
// with a directory of its own behind them. That one has each known tag once, with a count that fits the
// picture, so whatever else a file has costs nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/image/canvas.h"
#include "rewire/kernels/image/numbers.h"

namespace rewire::kernel::image {

struct TiffDirectory {
  std::int64_t width = 0, height = 0;
  std::int64_t samples = 1, bits = 1;
  std::uint32_t compression = 1;
  bool is_tiled = false;
  bool is_planar = false;  // each sample has parts of its own
  // The size of a strip or tile.
  std::int64_t part_width = 0, part_height = 0;
  std::int64_t parts = 0;
  // The most bytes of one part in the file.
  std::int64_t most_packed = 0;

  std::int64_t planes() const { return is_planar ? samples : 1; }
  // The least bytes of one row of a part, and of a part, in one plane.
  std::int64_t row_bytes() const;
  std::int64_t part_bytes() const;
};

// Reads as libtiff does.
class TiffFile {
 public:
  // False if the file is damaged, or of features that are refused: see docs/kernels-image.md.
  bool Open(File file, TiffDirectory* directory);

  std::uint64_t size() const { return file_.size + added_; }
  // Copies up to `bytes` bytes from `at` on. Returns how many.
  std::size_t Read(std::uint64_t at, void* out, std::size_t bytes) const;

 private:
  static constexpr std::size_t kMostEntries = 32, kMostHeader = 16, kMostEntry = 20;

  struct Layout;
  struct List {
    Numbers values;
    int bytes;  // of each
  };

  bool TakeSizes(List sizes, TiffDirectory* directory);
  bool Take(const Layout& layout, File entry, TiffDirectory* directory);
  void Put(const Layout& layout, std::size_t* at, std::uint64_t number, int bytes);

  File file_;
  std::array<std::uint8_t, kMostHeader> header_{};
  std::size_t header_size_ = 0;
  List places_{Numbers({}), 1};
  bool has_sizes_ = false;
  // The directory: its size, the entries, and the place of the next one, which is none.
  std::array<std::uint8_t, 8 + kMostEntries * kMostEntry + 8> directory_{};
  std::size_t added_ = 0;
};

}  // namespace rewire::kernel::image

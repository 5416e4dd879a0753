// SPDX-License-Identifier: Apache-2.0
//
// The parts of a JPEG 2000 codestream, and what OpenJPEG needs for each.
//
// OpenJPEG never sees the file. It gets codestreams that are made of checked parts only: for each tile one
// that states this tile as the whole picture, with the settings that are known here. So a part of the file
// that is read in another way here than there cannot exist, and each tile's memory and work are bounded
// beforehand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

// How one component is divided and coded.
struct ComponentCoding {
  int levels = 0;
  int block_width = 6, block_height = 6;  // as powers of two
  std::uint32_t style = 0;
  std::array<std::uint8_t, 33>
      parts{};     // of each level from the smallest: powers of two, height * 16 + width
  int planes = 0;  // the most bits that an element may have
  int shift = 0;   // of a region of interest
};

struct Coding {
  std::uint32_t layers = 1;
  bool mixes = false;  // the first three components are mixed
  std::array<ComponentCoding, 4> component;
};

// Marker segments that are passed on, in their order.
struct Segments {
  static constexpr int kMost = 24;
  std::array<File, kMost> segment{};
  int count = 0;
};

struct Rectangle {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;

  std::int64_t width() const { return right - left; }
  std::int64_t height() const { return bottom - top; }
  bool empty() const { return width() <= 0 || height() <= 0; }
};

struct Codestream {
  static constexpr std::uint32_t kMostComponents = 4;

  struct Component {
    std::uint8_t depth = 0;  // bits - 1, and 128 if they have a sign
    std::uint8_t across = 1, down = 1;
  };

  Rectangle picture;
  std::int64_t tile_width = 0, tile_height = 0, tile_left = 0, tile_top = 0;
  std::uint32_t components = 0;
  std::array<Component, kMostComponents> component{};
  Coding coding;
  Segments settings;
  File tiles;  // the parts of all tiles

  std::int64_t tiles_across() const { return (picture.right - tile_left + tile_width - 1) / tile_width; }
  std::int64_t tiles_down() const { return (picture.bottom - tile_top + tile_height - 1) / tile_height; }
};

// The samples of a component whose places lie in an area of the picture, by their columns and rows.
Rectangle SamplesIn(const Rectangle& area, const Codestream::Component& component);

// One part of a tile, as it lies in the file.
struct TilePart {
  std::uint32_t tile = 0;
  std::uint32_t number = 0;  // among the parts of its tile
  File header;               // marker segments
  File data;
};

// A tile, put together.
struct Tile {
  Rectangle area;
  std::int64_t grid_left = 0, grid_top = 0;
  Coding coding;
  Segments settings;
  File data;
};

// The memory and work that OpenJPEG needs to decode a tile.
struct TileCost {
  std::int64_t bytes = 0;    // without pixels
  std::int64_t work = 0;     // steps before the first pixel, of some nanoseconds each
  std::int64_t samples = 0;  // of all components
  std::int64_t blocks = 0;
  std::int64_t uses = 0;           // of blocks by packets
  std::int64_t largest_block = 0;  // its longer side
  int planes = 0;                  // the most bits that an element may have
};

// Reads everything up to the first tile. False if it is damaged, or of features that are refused: see
// docs/kernels-image.md.
bool ReadCodestream(File file, Codestream* stream);

// How many parts the tiles have. kDamaged if one is damaged.
Outcome CountParts(const Codestream& stream, Canvas& canvas, std::size_t* count);

// Reads the part at `at` in stream.tiles, and moves `at` behind it. False if it is damaged.
bool ReadTilePart(const Codestream& stream, std::size_t* at, TilePart* part);

// Reads the settings of a tile from its first part. `tile->data` is left to the caller.
bool ReadTile(const Codestream& stream, const TilePart& first, Tile* tile);

// False if the tile is divided more finely than any encoder does, or mixes components of unlike sizes.
bool MeasureTile(const Codestream& stream, const Tile& tile, TileCost* cost);

// The codestream of one tile, as the pieces that it consists of. Components without samples in the tile are
// left out: to OpenJPEG, such a component is one that it could not decode.
class TileStream {
 public:
  TileStream(const Codestream& stream, const Tile& tile);
  TileStream(const TileStream&) = delete;
  TileStream& operator=(const TileStream&) = delete;

  std::size_t size() const { return size_; }
  std::uint32_t components() const { return components_; }
  // The number of a component of the picture that has samples in the tile.
  std::uint32_t NumberOf(std::uint32_t component) const { return number_[component]; }
  // Copies up to `bytes` bytes from where the last call ended. Returns how many; 0 at the end.
  std::size_t Read(void* out, std::size_t bytes);

 private:
  static constexpr std::uint32_t kNone = Codestream::kMostComponents;

  void Add(File piece);
  void AddAll(const Segments& settings);

  std::array<std::uint8_t, 64> begin_{};
  std::array<std::uint8_t, 12> tile_begin_{};
  std::array<File, 6 * Segments::kMost + 5> pieces_{};
  std::array<std::uint32_t, Codestream::kMostComponents> number_{};  // kNone: left out
  std::uint32_t components_ = 0;
  std::size_t count_ = 0, size_ = 0;
  std::size_t piece_ = 0, at_ = 0;
};

}  // namespace rewire::kernel::image

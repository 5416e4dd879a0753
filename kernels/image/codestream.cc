// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/codestream.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::image {
namespace {

constexpr std::uint32_t kStart = 0xFF4F, kSize = 0xFF51, kCoding = 0xFF52, kComponentCoding = 0xFF53,
                        kTilePart = 0xFF90, kData = 0xFF93, kEnd = 0xFFD9;

// Big-endian numbers, in order. Behind the end they are 0, and Failed says so.
class Numbers {
 public:
  Numbers(File file, std::size_t at) : file_(file), at_(std::min(at, file.size)) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return file_.size - at_; }
  bool failed() const { return failed_; }
  std::uint32_t Take(int bytes) {
    std::uint32_t number = 0;
    for (int i = 0; i < bytes; ++i) {
      if (at_ == file_.size) failed_ = true;
      number = number << 8 | (at_ < file_.size ? file_.data[at_++] : 0U);
    }
    return number;
  }
  void Skip(std::size_t bytes) {
    if (bytes > left()) failed_ = true;
    at_ += std::min(bytes, left());
  }

 private:
  File file_;
  std::size_t at_;
  bool failed_ = false;
};

// Where the codestream begins; the file's size if nowhere, or if a palette has more than 4 columns, each of
// which would become a component.
std::size_t BeginOf(File file) {
  constexpr std::uint32_t kCodestreamBox = 0x6A703263, kHeaderBox = 0x6A703268, kPaletteBox = 0x70636C72;
  Numbers boxes(file, 0);
  while (boxes.left() >= 8) {
    const std::size_t begin = boxes.at();
    std::uint64_t length = boxes.Take(4);
    const std::uint32_t type = boxes.Take(4);
    if (length == 1) {
      length = std::uint64_t{boxes.Take(4)} << 32;
      length |= boxes.Take(4);
    }
    if (type == kCodestreamBox) return boxes.at();
    if (type == kHeaderBox) continue;  // it consists of boxes
    if (type == kPaletteBox) {
      Numbers palette = boxes;
      (void)palette.Take(2);
      if (palette.Take(1) > 4) return file.size;
    }
    const std::size_t taken = boxes.at() - begin;
    if (length < taken) break;
    boxes.Skip(static_cast<std::size_t>(length - taken));
  }
  return file.size;
}

bool ReadSizes(Numbers numbers, CodestreamSize* size) {
  (void)numbers.Take(2);  // what an encoder may use
  std::int64_t sides[8];  // right, bottom, left, top, and the same of the tiles
  for (std::int64_t& side : sides) side = numbers.Take(4);
  size->components = numbers.Take(2);
  size->width = sides[0] - sides[2];
  size->height = sides[1] - sides[3];
  const std::int64_t tile_width = sides[4], tile_height = sides[5], left = sides[6], top = sides[7];
  if (numbers.failed() || size->width <= 0 || size->height <= 0 || tile_width == 0 || tile_height == 0)
    return false;
  if (left > sides[2] || top > sides[3] || size->components == 0 || size->components > 4) return false;
  const std::int64_t across = (sides[0] - left + tile_width - 1) / tile_width;
  const std::int64_t down = (sides[1] - top + tile_height - 1) / tile_height;
  // OpenJPEG has some 6 KiB of settings for each tile and 1 KiB for each component of it. Samples are decoded
  // into 4 bytes, twice, and have blocks of 16 at least.
  constexpr std::int64_t kOfTile = 16384, kOfSample = 40, kOfAll = 1 << 20;
  const std::int64_t samples = cpu::Times(size->width, size->height, size->components);
  size->most_bytes =
      cpu::Plus(kOfAll, cpu::Plus(cpu::Times(kOfTile, across, down), cpu::Times(kOfSample, samples)));
  return true;
}

// Whether the parts of each level are no smaller than encoders make them.
bool HasLargeParts(Numbers numbers, bool is_of_component) {
  if (is_of_component) (void)numbers.Take(1);
  const bool states_parts = (numbers.Take(1) & 1U) != 0;
  if (!is_of_component) (void)numbers.Take(4);
  const std::uint32_t levels = numbers.Take(1);
  (void)numbers.Take(4);
  if (levels > 32) return false;
  for (std::uint32_t i = 0; states_parts && i <= levels; ++i) {
    const std::uint32_t sides = numbers.Take(1);
    if ((sides & 15U) < 4 || sides >> 4 < 4) return false;
  }
  return !numbers.failed();
}

}  // namespace

bool MeasureCodestream(File file, CodestreamSize* size) {
  size->has_boxes = file.size < 2 || file.data[0] != 0xFF;
  Numbers numbers(file, size->has_boxes ? BeginOf(file) : 0);
  if (numbers.Take(2) != kStart || numbers.Take(2) != kSize) return false;
  Numbers sizes = numbers;
  (void)sizes.Take(2);
  if (!ReadSizes(sizes, size)) return false;
  numbers.Skip(numbers.left() < 2 ? 0 : Numbers(numbers).Take(2));
  // The headers of all tiles, which may have settings of their own.
  std::size_t tile_begin = 0, tile_bytes = 0;
  while (numbers.left() >= 4) {
    const std::size_t begin = numbers.at();
    const std::uint32_t marker = numbers.Take(2);
    if (marker == kEnd) break;
    if (marker == kData) {
      // 0: up to the end.
      if (tile_bytes == 0) break;
      const std::size_t taken = numbers.at() - tile_begin;
      if (tile_bytes < taken) return false;
      numbers.Skip(tile_bytes - taken);
      continue;
    }
    const std::uint32_t length = numbers.Take(2);
    if (marker < 0xFF00 || length < 2) return false;
    Numbers body = numbers;
    if (marker == kTilePart) {
      (void)body.Take(2);
      tile_begin = begin;
      tile_bytes = body.Take(4);
    } else if (marker == kCoding || marker == kComponentCoding) {
      if (!HasLargeParts(body, marker == kComponentCoding)) return false;
    }
    numbers.Skip(length - 2);
  }
  return true;
}

}  // namespace rewire::kernel::image

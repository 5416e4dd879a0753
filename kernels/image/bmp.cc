// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps. Their rows are padded to 4 bytes and stand from the last to the first, or the
// other way round if the height is negative.
#include <algorithm>
#include <array>
#include <bit>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

enum Packing : std::uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksWithAlpha = 6 };

struct Bitmap {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool from_top = false;
  std::uint32_t bits = 0;
  std::uint32_t packing = kPlain;
  std::array<std::uint32_t, 3> masks{};                   // red, green, blue; of 16 and 32 bits
  std::array<std::array<std::uint8_t, 3>, 256> colors{};  // red, green, blue; of up to 8 bits
  std::size_t pixels = 0;                                 // where they begin

  bool has_colors() const { return bits <= 8; }
  std::int64_t row_bytes() const { return cpu::Times((width * bits + 31) / 32, 4); }
};

// Little-endian numbers of a file. What lies behind its end is 0; the caller asks whether it is there.
std::uint32_t NumberAt(File file, std::size_t at, int bytes) {
  std::uint32_t number = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    const std::size_t place = at + static_cast<std::size_t>(i);
    number = number << 8 | (place < file.size ? file.data[place] : 0U);
  }
  return number;
}

void ReadColors(File file, std::size_t at, std::size_t of_color, std::uint32_t stated, Bitmap* bitmap) {
  const std::uint32_t most = 1U << bitmap->bits;
  const std::uint32_t count = stated == 0 ? most : std::min(stated, most);
  for (std::uint32_t i = 0; i < count; ++i, at += of_color) {
    const std::uint32_t color = NumberAt(file, at, 3);
    bitmap->colors[i] = {static_cast<std::uint8_t>(color >> 16), static_cast<std::uint8_t>(color >> 8),
                         static_cast<std::uint8_t>(color)};
  }
}

// False if it is no bitmap that this file knows.
bool ReadHeader(File file, Bitmap* bitmap) {
  constexpr std::size_t kBegin = 14, kOldHeader = 12, kHeader = 40;
  const std::size_t header = NumberAt(file, kBegin, 4);
  if (file.size < kBegin + kOldHeader || (header != kOldHeader && header < kHeader)) return false;
  if (header > file.size - kBegin) return false;
  const bool is_old = header == kOldHeader;
  std::int32_t height = 0;
  if (is_old) {
    bitmap->width = NumberAt(file, 18, 2);
    height = static_cast<std::int32_t>(NumberAt(file, 20, 2));
    bitmap->bits = NumberAt(file, 24, 2);
  } else {
    bitmap->width = std::bit_cast<std::int32_t>(NumberAt(file, 18, 4));
    height = std::bit_cast<std::int32_t>(NumberAt(file, 22, 4));
    bitmap->bits = NumberAt(file, 28, 2);
    bitmap->packing = NumberAt(file, 30, 4);
  }
  bitmap->from_top = height < 0;
  bitmap->height = std::abs(static_cast<std::int64_t>(height));
  bitmap->pixels = NumberAt(file, 10, 4);
  if (bitmap->width <= 0 || bitmap->height == 0 || bitmap->pixels > file.size) return false;
  std::size_t behind = kBegin + header;
  switch (bitmap->packing) {
    case kPlain:
      bitmap->masks = bitmap->bits == 16 ? std::array<std::uint32_t, 3>{0x7C00, 0x3E0, 0x1F}
                                         : std::array<std::uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
      break;
    case kMasks:
    case kMasksWithAlpha:
      if (bitmap->bits != 16 && bitmap->bits != 32) return false;
      // In newer headers the masks are where the oldest one has them, right behind it.
      for (std::size_t i = 0; i < 3; ++i) bitmap->masks[i] = NumberAt(file, kBegin + kHeader + 4 * i, 4);
      break;
    case kRuns8:
    case kRuns4:
      if (bitmap->bits != (bitmap->packing == kRuns8 ? 8U : 4U) || bitmap->from_top) return false;
      break;
    default:
      return false;
  }
  switch (bitmap->bits) {
    case 1:
    case 2:
    case 4:
    case 8:
      ReadColors(file, behind, is_old ? 3 : 4, is_old ? 0 : NumberAt(file, 46, 4), bitmap);
      return true;
    case 16:
    case 24:
    case 32:
      return true;
    default:
      return false;
  }
}

// The bits of a mask as a byte: all of them is 255.
std::uint8_t Part(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const std::uint64_t most = mask >> shift;
  return static_cast<std::uint8_t>(((pixel & mask) >> shift) * std::uint64_t{255} / most);
}

// Writes red, green and blue of each pixel of a row that lies in the file.
void Unpack(const Bitmap& bitmap, const std::uint8_t* row, std::int64_t begin, std::int64_t end,
            std::uint8_t* out) {
  const std::uint32_t bits = bitmap.bits;
  for (std::int64_t x = begin; x < end; ++x) {
    std::uint8_t* rgb = out + 3 * x;
    if (bitmap.has_colors()) {
      const std::int64_t bit = x * bits;
      const std::uint32_t shift = 8 - bits - static_cast<std::uint32_t>(bit % 8);
      const std::uint32_t color = row[bit / 8] >> shift & ((1U << bits) - 1);
      std::copy_n(bitmap.colors[color].data(), 3, rgb);
    } else if (bits == 24) {
      for (int c = 0; c < 3; ++c) rgb[c] = row[3 * x + 2 - c];
    } else {
      const int bytes = static_cast<int>(bits / 8);
      const std::uint8_t* from = row + x * bytes;
      const std::uint32_t pixel = NumberAt({from, static_cast<std::size_t>(bytes)}, 0, bytes);
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = Part(pixel, bitmap.masks[c]);
    }
  }
}

// Writes the colors' numbers of runs, a byte for each pixel, rows from the last to the first. Pixels that no
// run names stay 0. Runs that leave the picture, or end with the file, end it.
bool UnpackRuns(const Bitmap& bitmap, File file, std::uint8_t* colors, Canvas& canvas) {
  const bool is_narrow = bitmap.packing == kRuns4;
  std::int64_t x = 0, y = 0;
  const auto put = [&](std::uint32_t color) {
    if (x < bitmap.width) colors[y * bitmap.width + x++] = static_cast<std::uint8_t>(color);
  };
  const auto color_of = [&](std::uint32_t byte, std::uint32_t i) {
    return !is_narrow ? byte : i % 2 == 0 ? byte >> 4 : byte & 15U;
  };
  std::size_t at = bitmap.pixels;
  while (y < bitmap.height && at + 2 <= file.size) {
    const std::uint32_t count = file.data[at];
    const std::uint32_t second = file.data[at + 1];
    at += 2;
    if (!canvas.Spend(4 + std::max(count, second))) return false;
    if (count > 0) {
      for (std::uint32_t i = 0; i < count; ++i) put(color_of(second, i));
    } else if (second == 0) {
      x = 0;
      ++y;
    } else if (second == 1) {
      break;
    } else if (second == 2) {
      x = std::min(x + NumberAt(file, at, 1), bitmap.width);
      y += NumberAt(file, at + 1, 1);
      at += 2;
    } else {
      const std::size_t bytes = is_narrow ? (second + 1) / 2 : second;
      for (std::uint32_t i = 0; i < second; ++i)
        put(color_of(NumberAt(file, at + (is_narrow ? i / 2 : i), 1), i));
      at += (bytes + 1) / 2 * 2;
    }
  }
  return true;
}

}  // namespace

Outcome DecodeBmp(File file, Canvas& canvas) {
  Bitmap bitmap;
  if (!ReadHeader(file, &bitmap)) return Outcome::kDamaged;
  const bool has_runs = bitmap.packing == kRuns8 || bitmap.packing == kRuns4;
  const auto left = static_cast<std::int64_t>(file.size - bitmap.pixels);
  if (!has_runs && cpu::Times(bitmap.row_bytes(), bitmap.height) > left) return Outcome::kDamaged;
  const Outcome opened = canvas.Open(bitmap.width, bitmap.height);
  if (opened != Outcome::kDone) return opened;
  const std::uint8_t* rows = file.data + bitmap.pixels;
  std::int64_t row_bytes = bitmap.row_bytes();
  if (has_runs) {
    row_bytes = bitmap.width;
    const std::int64_t size = cpu::Times(bitmap.width, bitmap.height);
    std::uint8_t* colors = canvas.Scratch(size);
    if (colors == nullptr || !canvas.Blank(colors, size) || !UnpackRuns(bitmap, file, colors, canvas))
      return Outcome::kFailed;
    rows = colors;
    bitmap.bits = 8;
  }
  std::uint8_t* rgb = canvas.Scratch(cpu::Times(3, bitmap.width));
  if (rgb == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < bitmap.height; ++y) {
    const std::uint8_t* row = rows + (bitmap.from_top ? y : bitmap.height - 1 - y) * row_bytes;
    const bool unpacked = canvas.For(
        bitmap.width, 8, [&](std::int64_t begin, std::int64_t end) { Unpack(bitmap, row, begin, end, rgb); });
    if (!unpacked || !canvas.Put(y, rgb, 3)) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

}  // namespace rewire::kernel::image

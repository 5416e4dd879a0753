// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/tiff_directory.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::image {
namespace {

using cpu::Plus;
using cpu::Times;

enum Tag : std::uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kFillOrder = 266,
  kStripPlaces = 273,
  kSamples = 277,
  kRowsPerStrip = 278,
  kStripSizes = 279,
  kPlanes = 284,
  kFax3Options = 292,
  kFax4Options = 293,
  kPredictor = 317,
  kWhitePoint = 318,
  kColorCount = 320,
  kTileWidth = 322,
  kTileHeight = 323,
  kTilePlaces = 324,
  kTileSizes = 325,
  kInkSet = 332,
  kExtraSamples = 338,
  kSampleFormat = 339,
  kJpegTables = 347,
  kYCbCrCoefficients = 529,
  kYCbCrSampling = 530,
  kYCbCrPosition = 531,
  kReferences = 532,
};

constexpr std::int64_t kMostSamples = 16, kMostStrips = std::int64_t{1} << 20;
// One number for each part.
constexpr std::int64_t kOfParts = -1;

struct KnownTag {
  std::uint32_t tag;
  std::int64_t most;  // numbers
};
constexpr KnownTag kKnownTags[] = {
    {kWidth, 1},
    {kHeight, 1},
    {kBits, kMostSamples},
    {kCompression, 1},
    {kPhotometric, 1},
    {kFillOrder, 1},
    {kStripPlaces, kOfParts},
    {kSamples, 1},
    {kRowsPerStrip, 1},
    {kStripSizes, kOfParts},
    {kPlanes, 1},
    {kFax3Options, 1},
    {kFax4Options, 1},
    {kPredictor, 1},
    {kWhitePoint, 2},
    {kColorCount, 3 << 16},
    {kTileWidth, 1},
    {kTileHeight, 1},
    {kTilePlaces, kOfParts},
    {kTileSizes, kOfParts},
    {kInkSet, 1},
    {kExtraSamples, kMostSamples},
    {kSampleFormat, kMostSamples},
    {kJpegTables, 1 << 16},
    {kYCbCrCoefficients, 3},
    {kYCbCrSampling, 2},
    {kYCbCrPosition, 1},
    {kReferences, 6},
};

const KnownTag* FindTag(std::uint32_t tag) {
  const auto* found = std::find_if(std::begin(kKnownTags), std::end(kKnownTags),
                                   [&](const KnownTag& k) { return k.tag == tag; });
  return found == std::end(kKnownTags) ? nullptr : found;
}

// Bytes of a number; 0 of an unknown type.
int BytesOf(std::uint32_t type) {
  constexpr std::array<int, 19> kBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

// Codecs that are widely used and looked after, and whose memory is known beforehand.
bool IsTrusted(std::uint32_t compression) {
  switch (compression) {
    case 1:  // none
    case 2:  // CCITT, of three kinds
    case 3:
    case 4:
    case 5:  // LZW
    case 7:  // JPEG
    case 8:  // deflate, of two names
    case 32946:
    case 32773:  // runs of bytes
    case 50000:  // zstd
      return true;
    default:
      return false;
  }
}

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

std::int64_t TiffDirectory::row_bytes() const {
  return CeilDivide(Times(part_width, bits, is_planar ? 1 : samples), 8);
}
std::int64_t TiffDirectory::part_bytes() const { return Times(row_bytes(), part_height); }

// The two forms of the format differ in the sizes of these.
struct TiffFile::Layout {
  ByteOrder order = ByteOrder::kBig;
  bool is_big = false;

  int of_place() const { return is_big ? 8 : 4; }
  int of_count() const { return is_big ? 8 : 2; }
  std::size_t of_entry() const { return is_big ? 20 : 12; }
};

void TiffFile::Put(const Layout& layout, std::size_t* at, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    const int byte = layout.order == ByteOrder::kBig ? bytes - 1 - i : i;
    directory_[(*at)++] = static_cast<std::uint8_t>(number >> (8 * byte));
  }
}

// The parts lie in the file.
bool TiffFile::TakeSizes(List sizes, TiffDirectory* directory) {
  for (std::int64_t i = 0; i < directory->parts; ++i) {
    const std::uint64_t place = places_.values.Take(places_.bytes), size = sizes.values.Take(sizes.bytes);
    if (place > file_.size || size > file_.size - place) return false;
    directory->most_packed = std::max(directory->most_packed, static_cast<std::int64_t>(size));
  }
  has_sizes_ = true;
  return true;
}

// Checks an entry whose tag is known. Its first number becomes part of the directory, if it matters.
bool TiffFile::Take(const Layout& layout, File entry, TiffDirectory* directory) {
  Numbers numbers(entry, 0, layout.order);
  const std::uint32_t tag = numbers.Take32(2), type = numbers.Take32(2);
  const auto count = static_cast<std::int64_t>(
      std::min<std::uint64_t>(numbers.Take(layout.of_place()), static_cast<std::uint64_t>(cpu::kMostSize)));
  const int bytes = BytesOf(type);
  const std::int64_t most = FindTag(tag)->most;
  const std::int64_t all = Times(count, bytes);
  if (bytes == 0 || count == 0 || (most != kOfParts && count > most)) return false;
  Numbers values = numbers;
  if (all > layout.of_place()) values = Numbers(file_, numbers.Take(layout.of_place()), layout.order);
  if (values.failed() || static_cast<std::uint64_t>(all) > values.left()) return false;
  const bool is_whole = type == 1 || type == 3 || type == 4 || type == 16;
  const auto first = static_cast<std::int64_t>(
      std::min<std::uint64_t>(Numbers(values).Take(bytes), static_cast<std::uint64_t>(cpu::kMostSize)));
  switch (tag) {
    case kWidth:
      directory->width = first;
      return is_whole;
    case kHeight:
      directory->height = first;
      return is_whole;
    case kBits:
      directory->bits = first;
      return is_whole;
    case kCompression:
      directory->compression = static_cast<std::uint32_t>(first);
      return is_whole;
    case kSamples:
      directory->samples = first;
      return is_whole;
    case kPlanes:
      directory->is_planar = first == 2;
      return is_whole;
    case kTileWidth:
      directory->is_tiled = true;
      directory->part_width = first;
      return is_whole;
    case kTileHeight:
      directory->is_tiled = true;
      directory->part_height = first;
      return is_whole;
    case kRowsPerStrip:
      directory->part_height = first;
      return is_whole;
    case kStripPlaces:
    case kTilePlaces:
      // Either strips or tiles.
      if (directory->parts != 0 || count > kMostStrips) return false;
      directory->parts = count;
      places_ = {values, bytes};
      return is_whole;
    case kStripSizes:
    case kTileSizes:
      return is_whole && count == directory->parts && TakeSizes({values, bytes}, directory);
    default:
      return true;
  }
}

bool TiffFile::Open(File file, TiffDirectory* directory) {
  *directory = {};
  file_ = file;
  Layout layout;
  if (file.size < 8 || file.size > 0xFFFF0000U) return false;
  layout.order = file.data[0] == 'I' ? ByteOrder::kLittle : ByteOrder::kBig;
  Numbers head(file, 2, layout.order);
  layout.is_big = head.Take(2) == 43;
  if (layout.is_big && (head.Take(2) != 8 || head.Take(2) != 0)) return false;
  const std::size_t place_at = head.at();
  Numbers entries(file,
                  static_cast<std::size_t>(std::min<std::uint64_t>(head.Take(layout.of_place()), file.size)),
                  layout.order);
  const std::uint64_t stated = entries.Take(layout.of_count());
  if (head.failed() || entries.failed() || stated > entries.left() / layout.of_entry()) return false;
  // The known entries, each tag once and in order, as they stand in the file.
  std::array<File, kMostEntries> kept{};
  std::size_t count = 0;
  for (std::uint64_t i = 0; i < stated; ++i) {
    const File entry = entries.Part(layout.of_entry());
    const std::uint32_t tag = Numbers(entry, 0, layout.order).Take32(2);
    if (FindTag(tag) == nullptr) continue;
    std::size_t place = count;
    const auto tag_at = [&](std::size_t k) { return Numbers(kept[k], 0, layout.order).Take32(2); };
    while (place > 0 && tag_at(place - 1) > tag) --place;
    if (place > 0 && tag_at(place - 1) == tag) continue;
    std::copy_backward(kept.begin() + static_cast<std::ptrdiff_t>(place),
                       kept.begin() + static_cast<std::ptrdiff_t>(count),
                       kept.begin() + static_cast<std::ptrdiff_t>(count + 1));
    kept[place] = entry;
    ++count;
  }
  header_size_ = place_at + static_cast<std::size_t>(layout.of_place());
  std::copy_n(file.data, place_at, directory_.begin());
  std::size_t at = place_at;
  Put(layout, &at, file.size + file.size % 2, layout.of_place());
  std::copy_n(directory_.begin(), header_size_, header_.begin());
  // The directory begins at an even place.
  at = file.size % 2;
  directory_[0] = 0;
  Put(layout, &at, count, layout.of_count());
  for (std::size_t i = 0; i < count; ++i) {
    if (!Take(layout, kept[i], directory)) return false;
    std::copy_n(kept[i].data, kept[i].size, directory_.begin() + static_cast<std::ptrdiff_t>(at));
    at += kept[i].size;
  }
  Put(layout, &at, 0, layout.of_place());
  added_ = at;

  constexpr std::int64_t kMostSide = 0x7FFFFFFF;
  const auto is_side = [](std::int64_t side) { return side > 0 && side <= kMostSide; };
  if (!is_side(directory->width) || !is_side(directory->height) || directory->samples <= 0 ||
      directory->samples > kMostSamples || directory->bits <= 0 || directory->bits > 16 ||
      !IsTrusted(directory->compression))
    return false;
  if (!directory->is_tiled) {
    directory->part_width = directory->width;
    // Without one, or with a very large one, all rows are one strip.
    const std::int64_t rows = directory->part_height == 0 ? directory->height : directory->part_height;
    directory->part_height = std::min(rows, directory->height);
  }
  if (!is_side(directory->part_width) || !is_side(directory->part_height)) return false;
  const std::int64_t expected =
      Times(CeilDivide(directory->width, directory->part_width),
            CeilDivide(directory->height, directory->part_height), directory->planes());
  return has_sizes_ && directory->parts == expected;
}

std::size_t TiffFile::Read(std::uint64_t at, void* out, std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes && at < size()) {
    const File piece = at < header_size_ ? File{header_.data(), header_size_}
                       : at < file_.size ? file_
                                         : File{directory_.data(), added_};
    const std::uint64_t begin = at < file_.size ? 0 : file_.size;
    const std::size_t within = static_cast<std::size_t>(at - begin);
    const std::size_t count = std::min(bytes - done, piece.size - within);
    std::copy_n(piece.data + within, count, static_cast<std::uint8_t*>(out) + done);
    done += count;
    at += count;
  }
  return done;
}

}  // namespace rewire::kernel::image

// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/codestream.h"

#include <algorithm>

#include "rewire/kernels/image/numbers.h"

namespace rewire::kernel::image {
namespace {

enum Marker : std::uint32_t {
  kStart = 0xFF4F,
  kSize = 0xFF51,
  kCoding = 0xFF52,
  kComponentCoding = 0xFF53,
  kTileLengths = 0xFF55,
  kPacketLengths = 0xFF57,
  kTilePacketLengths = 0xFF58,
  kQuantization = 0xFF5C,
  kComponentQuantization = 0xFF5D,
  kRegion = 0xFF5E,
  kRegistration = 0xFF63,
  kComment = 0xFF64,
  kTilePart = 0xFF90,
  kData = 0xFF93,
  kEnd = 0xFFD9,
};

constexpr int kMostLevels = 32;
// The most segments in one header, and parts in a file, that are read before the host is asked.
constexpr int kMostSegments = 4096;
constexpr std::size_t kMostParts = std::size_t{1} << 17;

// The levels and what follows in a segment of either kind. Parts of fewer than 16 elements a side and blocks
// of fewer than 256 elements are refused: encoders do not make them, and each costs some hundred bytes.
bool ReadLevels(Numbers& numbers, bool states_parts, ComponentCoding* coding) {
  constexpr std::uint32_t kKnownStyles = 0x3F;  // 64 is another block coder
  const std::uint32_t levels = numbers.Take32(1);
  coding->block_width = static_cast<int>(numbers.Take32(1)) + 2;
  coding->block_height = static_cast<int>(numbers.Take32(1)) + 2;
  coding->style = numbers.Take32(1);
  const std::uint32_t transform = numbers.Take32(1);
  if (levels > kMostLevels || transform > 1 || (coding->style & ~kKnownStyles) != 0) return false;
  const int block = coding->block_width + coding->block_height;
  if (coding->block_width > 10 || coding->block_height > 10 || block > 12) return false;
  coding->levels = static_cast<int>(levels);
  for (std::uint32_t i = 0; i <= levels; ++i) {
    const std::uint32_t sides = states_parts ? numbers.Take32(1) : 0xFFU;
    // Above the smallest level a part has three bands of half its size.
    const std::uint32_t least = i == 0 ? 0 : 1;
    if ((sides & 15U) < least || sides >> 4 < least) return false;
    coding->parts[i] = static_cast<std::uint8_t>(sides);
  }
  return !numbers.failed() && numbers.left() == 0;
}

bool ReadCoding(File body, std::uint32_t components, Coding* coding) {
  Numbers numbers(body);
  const std::uint32_t style = numbers.Take32(1), order = numbers.Take32(1);
  coding->layers = numbers.Take32(2);
  const std::uint32_t mixes = numbers.Take32(1);
  // Bits of the style: parts are stated, and two kinds of marks between packets.
  if (style > 7 || order > 4 || coding->layers == 0 || mixes > 1) return false;
  coding->mixes = mixes == 1;
  ComponentCoding read;
  if (!ReadLevels(numbers, (style & 1U) != 0, &read)) return false;
  for (std::uint32_t i = 0; i < components; ++i) {
    read.planes = coding->component[i].planes;
    read.shift = coding->component[i].shift;
    coding->component[i] = read;
  }
  return true;
}

// Takes the number of a component.
ComponentCoding* TakeComponent(Numbers& numbers, std::uint32_t components, Coding* coding) {
  const std::uint32_t component = numbers.Take32(1);
  return component < components ? &coding->component[component] : nullptr;
}

bool ReadComponentCoding(File body, std::uint32_t components, Coding* coding) {
  Numbers numbers(body);
  ComponentCoding* of = TakeComponent(numbers, components, coding);
  const std::uint32_t style = numbers.Take32(1);
  return of != nullptr && style <= 1 && ReadLevels(numbers, style == 1, of);
}

// The most bits of any band.
bool ReadPlanes(Numbers& numbers, int* planes) {
  const std::uint32_t style = numbers.Take32(1);
  const std::uint32_t kind = style & 31U;
  if (kind > 2 || numbers.left() == 0 || numbers.left() > 2 * (3 * kMostLevels + 1)) return false;
  std::uint32_t most = 0;
  while (numbers.left() > 0)
    most = std::max(most, kind == 0 ? numbers.Take32(1) >> 3 : numbers.Take32(2) >> 11);
  *planes = static_cast<int>(most + (style >> 5));
  return !numbers.failed();
}

bool ReadQuantization(File body, std::uint32_t components, Coding* coding) {
  Numbers numbers(body);
  int planes = 0;
  if (!ReadPlanes(numbers, &planes)) return false;
  for (std::uint32_t i = 0; i < components; ++i) coding->component[i].planes = planes;
  return true;
}

bool ReadComponentQuantization(File body, std::uint32_t components, Coding* coding) {
  Numbers numbers(body);
  ComponentCoding* of = TakeComponent(numbers, components, coding);
  return of != nullptr && ReadPlanes(numbers, &of->planes);
}

bool ReadRegion(File body, std::uint32_t components, Coding* coding) {
  Numbers numbers(body);
  ComponentCoding* of = TakeComponent(numbers, components, coding);
  if (of == nullptr || numbers.Take32(1) != 0) return false;
  of->shift = numbers.Take32(1) & 0xFF;
  return !numbers.failed() && numbers.left() == 0;
}

// Reads one marker segment of a header. Passes on what is known, drops what only informs, refuses the rest.
bool TakeSegment(Numbers& numbers, File file, std::uint32_t components, Coding* coding, Segments* segments) {
  const std::size_t begin = numbers.at();
  const std::uint32_t marker = numbers.Take32(2), length = numbers.Take32(2);
  if (length < 2) return false;
  const File body = numbers.Part(length - 2);
  if (numbers.failed()) return false;
  bool is_read = false;
  switch (marker) {
    case kTileLengths:
    case kPacketLengths:
    case kTilePacketLengths:
    case kRegistration:
    case kComment:
      return true;
    case kCoding:
      is_read = ReadCoding(body, components, coding);
      break;
    case kComponentCoding:
      is_read = ReadComponentCoding(body, components, coding);
      break;
    case kQuantization:
      is_read = ReadQuantization(body, components, coding);
      break;
    case kComponentQuantization:
      is_read = ReadComponentQuantization(body, components, coding);
      break;
    case kRegion:
      is_read = ReadRegion(body, components, coding);
      break;
    default:
      return false;
  }
  if (!is_read || segments->count == Segments::kMost) return false;
  segments->segment[static_cast<std::size_t>(segments->count++)] = {file.data + begin, numbers.at() - begin};
  return true;
}

bool ReadSize(File body, Codestream* stream) {
  constexpr std::int64_t kMostCoordinate = 0x7FFFFFFF;
  Numbers numbers(body);
  numbers.Skip(2);  // what an encoder may use
  const auto take = [&] { return static_cast<std::int64_t>(numbers.Take(4)); };
  stream->picture.right = take();
  stream->picture.bottom = take();
  stream->picture.left = take();
  stream->picture.top = take();
  stream->tile_width = take();
  stream->tile_height = take();
  stream->tile_left = take();
  stream->tile_top = take();
  stream->components = numbers.Take32(2);
  const Rectangle& picture = stream->picture;
  if (picture.width() <= 0 || picture.height() <= 0 || picture.right > kMostCoordinate ||
      picture.bottom > kMostCoordinate || stream->tile_width == 0 || stream->tile_height == 0)
    return false;
  if (stream->tile_left > picture.left || stream->tile_top > picture.top ||
      stream->tile_left + stream->tile_width <= picture.left ||
      stream->tile_top + stream->tile_height <= picture.top)
    return false;
  if (stream->components == 0 || stream->components > Codestream::kMostComponents) return false;
  for (std::uint32_t i = 0; i < stream->components; ++i) {
    Codestream::Component& component = stream->component[i];
    component.depth = static_cast<std::uint8_t>(numbers.Take(1));
    component.across = static_cast<std::uint8_t>(numbers.Take(1));
    component.down = static_cast<std::uint8_t>(numbers.Take(1));
    const auto is_known = [](std::uint8_t pixels) { return pixels == 1 || pixels == 2 || pixels == 4; };
    if ((component.depth & 127U) > 30 || !is_known(component.across) || !is_known(component.down))
      return false;
  }
  return !numbers.failed() && numbers.left() == 0;
}

}  // namespace

bool ReadCodestream(File file, Codestream* stream) {
  *stream = {};
  Numbers numbers(file);
  if (numbers.Take(2) != kStart || numbers.Take(2) != kSize) return false;
  const std::uint32_t length = numbers.Take32(2);
  if (length < 2 || !ReadSize(numbers.Part(length - 2), stream)) return false;
  for (int count = 0; Numbers(numbers).Take(2) != kTilePart; ++count) {
    if (count == kMostSegments ||
        !TakeSegment(numbers, file, stream->components, &stream->coding, &stream->settings))
      return false;
  }
  stream->tiles = numbers.Part(numbers.left());
  return true;
}

Outcome CountParts(const Codestream& stream, Canvas& canvas, std::size_t* count) {
  TilePart part;
  *count = 0;
  for (std::size_t at = 0; at < stream.tiles.size; ++*count) {
    if (!canvas.Spend(cpu::kPace / 64)) return Outcome::kFailed;
    if (*count == kMostParts || !ReadTilePart(stream, &at, &part)) return Outcome::kDamaged;
  }
  return Outcome::kDone;
}

bool ReadTilePart(const Codestream& stream, std::size_t* at, TilePart* part) {
  const std::size_t begin = *at;
  Numbers numbers(stream.tiles, begin);
  if (numbers.Take(2) != kTilePart || numbers.Take(2) != 10) return false;
  part->tile = numbers.Take32(2);
  std::uint64_t length = numbers.Take(4);
  part->number = numbers.Take32(1);
  numbers.Skip(1);  // how many there are
  const bool is_last = length == 0;
  if (is_last) length = stream.tiles.size - begin;
  if (numbers.failed() || length > stream.tiles.size - begin) return false;
  const File whole{stream.tiles.data + begin, static_cast<std::size_t>(length)};
  Numbers within(whole, numbers.at() - begin);
  const std::size_t header = within.at();
  // The settings of all parts but the first are read here alone: they must not have any.
  Coding ignored = stream.coding;
  Segments settings;
  for (int count = 0; Numbers(within).Take(2) != kData; ++count) {
    if (count == kMostSegments || !TakeSegment(within, whole, stream.components, &ignored, &settings))
      return false;
  }
  if (part->number > 0 && settings.count > 0) return false;
  part->header = {whole.data + header, within.at() - header};
  within.Skip(2);
  part->data = within.Part(within.left());
  *at = begin + whole.size;
  // Behind the last one there is the mark of the end, or nothing.
  if (is_last) {
    File& data = part->data;
    if (data.size >= 2 && Numbers(data, data.size - 2).Take(2) == kEnd) data.size -= 2;
    return true;
  }
  if (Numbers(stream.tiles, *at).Take(2) == kEnd) *at = stream.tiles.size;
  return true;
}

Rectangle SamplesIn(const Rectangle& area, const Codestream::Component& component) {
  const auto divide = [](std::int64_t at, std::int64_t step) { return (at + step - 1) / step; };
  return {divide(area.left, component.across), divide(area.top, component.down),
          divide(area.right, component.across), divide(area.bottom, component.down)};
}

bool ReadTile(const Codestream& stream, const TilePart& first, Tile* tile) {
  const std::int64_t across = stream.tiles_across();
  const std::int64_t column = first.tile % across, row = first.tile / across;
  if (first.number != 0 || row >= stream.tiles_down()) return false;
  *tile = {};
  tile->grid_left = stream.tile_left + column * stream.tile_width;
  tile->grid_top = stream.tile_top + row * stream.tile_height;
  tile->area.left = std::max(tile->grid_left, stream.picture.left);
  tile->area.top = std::max(tile->grid_top, stream.picture.top);
  tile->area.right = std::min(tile->grid_left + stream.tile_width, stream.picture.right);
  tile->area.bottom = std::min(tile->grid_top + stream.tile_height, stream.picture.bottom);
  tile->coding = stream.coding;
  for (Numbers numbers(first.header); numbers.left() > 0;) {
    if (!TakeSegment(numbers, first.header, stream.components, &tile->coding, &tile->settings)) return false;
  }
  return true;
}

TileStream::TileStream(const Codestream& stream, const Tile& tile) {
  std::size_t at = 0;
  const auto put = [&](std::int64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) begin_[at++] = static_cast<std::uint8_t>(number >> (8 * i));
  };
  put(kStart, 2);
  put(kSize, 2);
  for (std::uint32_t i = 0; i < stream.components; ++i)
    number_[i] = SamplesIn(tile.area, stream.component[i]).empty() ? kNone : components_++;
  put(38 + 3 * std::int64_t{components_}, 2);
  put(0, 2);
  for (const std::int64_t side :
       {tile.area.right, tile.area.bottom, tile.area.left, tile.area.top, tile.area.right - tile.grid_left,
        tile.area.bottom - tile.grid_top, tile.grid_left, tile.grid_top})
    put(side, 4);
  put(components_, 2);
  for (std::uint32_t i = 0; i < stream.components; ++i) {
    if (number_[i] == kNone) continue;
    const Codestream::Component& component = stream.component[i];
    for (const std::uint8_t byte : {component.depth, component.across, component.down}) put(byte, 1);
  }
  Add({begin_.data(), at});
  AddAll(stream.settings);
  // The only tile, in one part which goes up to the end.
  static constexpr std::array<std::uint8_t, 12> kTileBegin = {0xFF, 0x90, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1};
  tile_begin_ = kTileBegin;
  Add({tile_begin_.data(), tile_begin_.size()});
  AddAll(tile.settings);
  static constexpr std::array<std::uint8_t, 2> kDataBegin = {0xFF, 0x93}, kAllEnd = {0xFF, 0xD9};
  Add({kDataBegin.data(), kDataBegin.size()});
  Add(tile.data);
  Add({kAllEnd.data(), kAllEnd.size()});
}

void TileStream::Add(File piece) {
  pieces_[count_++] = piece;
  size_ += piece.size;
}

void TileStream::AddAll(const Segments& settings) {
  static constexpr std::array<std::uint8_t, Codestream::kMostComponents> kNumbers = {0, 1, 2, 3};
  constexpr std::size_t kNumber = 4;  // where a segment has the number of its component
  for (int i = 0; i < settings.count; ++i) {
    const File& segment = settings.segment[static_cast<std::size_t>(i)];
    const std::uint32_t marker = Numbers(segment).Take32(2);
    if (marker != kComponentCoding && marker != kComponentQuantization && marker != kRegion) {
      Add(segment);
    } else if (const std::uint32_t number = number_[segment.data[kNumber]]; number != kNone) {
      Add({segment.data, kNumber});
      Add({&kNumbers[number], 1});
      Add({segment.data + kNumber + 1, segment.size - kNumber - 1});
    }
  }
}

std::size_t TileStream::Read(void* out, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes && piece_ < count_) {
    const File& piece = pieces_[piece_];
    const std::size_t count = std::min(bytes - done, piece.size - at_);
    std::copy_n(piece.data + at_, count, static_cast<std::uint8_t*>(out) + done);
    done += count;
    at_ += count;
    if (at_ == piece.size) {
      ++piece_;
      at_ = 0;
    }
  }
  return done;
}

}  // namespace rewire::kernel::image

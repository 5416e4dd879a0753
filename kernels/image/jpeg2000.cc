// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, by OpenJPEG: tile by tile, and large tiles window by window, so that the host is asked in
// between.
#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/codestream.h"
#include "rewire/kernels/image/decoders.h"
#include "rewire/kernels/image/jpeg2000_boxes.h"
#include "rewire/kernels/image/numbers.h"
#include "rewire/kernels/image/tile_samples.h"

namespace rewire::kernel::image {
namespace {

constexpr OPJ_SIZE_T kEndOfStream = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T ReadStream(void* out, OPJ_SIZE_T bytes, void* handle) {
  const std::size_t count = static_cast<TileStream*>(handle)->Read(out, bytes);
  return count == 0 ? kEndOfStream : count;
}

// Streams and codecs have the same type to OpenJPEG, so that each part names its function.
template <auto kDelete>
struct DeletePart {
  template <typename Part>
  void operator()(Part* part) const {
    kDelete(part);
  }
};
using Stream = std::unique_ptr<opj_stream_t, DeletePart<opj_stream_destroy>>;
using Codec = std::unique_ptr<opj_codec_t, DeletePart<opj_destroy_codec>>;
using Image = std::unique_ptr<opj_image_t, DeletePart<opj_image_destroy>>;

// A tile that OpenJPEG has read, whose windows can be decoded one after the other.
class TileDecoder {
 public:
  TileDecoder(const Codestream& codestream, const Tile& tile) : bytes_(codestream, tile) {}

  bool Open() {
    constexpr OPJ_SIZE_T kPart = 4096;
    stream_.reset(opj_stream_create(kPart, OPJ_TRUE));
    codec_.reset(opj_create_decompress(OPJ_CODEC_J2K));
    if (stream_ == nullptr || codec_ == nullptr) return false;
    opj_stream_set_read_function(stream_.get(), ReadStream);
    opj_stream_set_user_data(stream_.get(), &bytes_, nullptr);
    opj_stream_set_user_data_length(stream_.get(), bytes_.size());
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_image_t* made = nullptr;
    const bool is_read = opj_setup_decoder(codec_.get(), &parameters) != OPJ_FALSE &&
                         opj_read_header(stream_.get(), codec_.get(), &made) != OPJ_FALSE;
    image_.reset(made);
    return is_read && image_->numcomps == bytes_.components();
  }
  // False if the tile is damaged.
  bool Decode(const Rectangle& window) {
    const auto number = [](std::int64_t side) { return static_cast<OPJ_INT32>(side); };
    return opj_set_decode_area(codec_.get(), image_.get(), number(window.left), number(window.top),
                               number(window.right), number(window.bottom)) != OPJ_FALSE &&
           opj_decode(codec_.get(), stream_.get(), image_.get()) != OPJ_FALSE;
  }
  // A component that has samples in the tile, as the last window has it.
  const opj_image_comp_t& component(std::uint32_t index) const {
    return image_->comps[bytes_.NumberOf(index)];
  }

 private:
  TileStream bytes_;
  Stream stream_;
  Codec codec_;
  Image image_;
};

// One color of the picture as bytes.
struct Channel {
  TileSamples samples;
  std::uint32_t component = 0;
  int depth = 0;
  bool has_sign = false;
  const Jpeg2000Boxes* boxes = nullptr;  // if a palette has the values
  std::uint32_t column = 0;

  std::uint8_t At(std::int64_t x, std::int64_t y) const {
    std::int64_t value = samples.At(x, y);
    int bits = depth;
    bool is_signed = has_sign;
    if (boxes != nullptr) {
      value = ColorAt(std::clamp<std::int64_t>(value, 0, boxes->entries - 1));
      bits = boxes->column[column].bits;
      is_signed = boxes->column[column].is_signed;
    }
    if (is_signed) value += std::int64_t{1} << (bits - 1);
    value = std::clamp<std::int64_t>(value, 0, (std::int64_t{1} << bits) - 1);
    return static_cast<std::uint8_t>(bits > 8 ? value >> (bits - 8) : value << (8 - bits));
  }

 private:
  std::int64_t ColorAt(std::int64_t entry) const {
    std::size_t begin = 0, row = 0;
    for (std::uint32_t i = 0; i < boxes->columns; ++i) {
      const auto bytes = static_cast<std::size_t>(boxes->column[i].bits + 7) / 8;
      if (i < column) begin += bytes;
      row += bytes;
    }
    const int bytes = (boxes->column[column].bits + 7) / 8;
    return static_cast<std::int64_t>(
        Numbers(boxes->colors, static_cast<std::size_t>(entry) * row + begin).Take(bytes));
  }
};

// Brightness and two differences of color to red, green and blue, in place, as JFIF says.
void ToRgb(std::uint8_t* pixel) {
  constexpr int kHalf = 1 << 15;
  const int y = pixel[0] << 16, blue = pixel[1] - 128, red = pixel[2] - 128;
  const int rgb[] = {y + 91881 * red, y - 22554 * blue - 46802 * red, y + 116130 * blue};
  for (int c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(std::clamp((rgb[c] + kHalf) >> 16, 0, 255));
}

// The colors of a picture: one if it has one or two channels, which may be gray and opacity, else three.
struct Colors {
  std::uint32_t count = 0;
  std::array<Jpeg2000Boxes::Source, 3> source{};
};

bool FindColors(const Codestream& stream, const Jpeg2000Boxes& boxes, Colors* colors) {
  const std::uint32_t channels = boxes.channels > 0 ? boxes.channels : stream.components;
  colors->count = channels >= 3 ? 3 : 1;
  for (std::uint32_t i = 0; i < colors->count; ++i) {
    const std::uint32_t channel = boxes.color[i];
    if (channel >= channels) return false;
    colors->source[i] = boxes.channels > 0 ? boxes.source[channel] : Jpeg2000Boxes::Source{channel, false, 0};
    if (colors->source[i].component >= stream.components) return false;
  }
  return true;
}

struct Picture {
  const Codestream& stream;
  const Jpeg2000Boxes& boxes;
  std::uint32_t colors = 0;
  std::array<Channel, 3> channels{};
  std::uint8_t* row = nullptr;  // has room for three bytes for each pixel of the picture's width
};

bool OpenChannels(const Colors& colors, Picture* picture, Canvas& canvas) {
  picture->colors = colors.count;
  for (std::uint32_t c = 0; c < colors.count; ++c) {
    const Jpeg2000Boxes::Source& source = colors.source[c];
    Channel& channel = picture->channels[c];
    channel.component = source.component;
    channel.column = source.column;
    if (source.by_palette) channel.boxes = &picture->boxes;
    const std::uint8_t depth = picture->stream.component[source.component].depth;
    channel.depth = (depth & 127) + 1;
    channel.has_sign = depth > 127;
    if (!channel.samples.Open(picture->stream, source.component, canvas)) return false;
  }
  return true;
}

// `decoder` has decoded the window. It is null if no component has a sample in the tile.
Outcome PutWindow(const TileDecoder* decoder, const Rectangle& window, Picture& picture, Canvas& canvas) {
  const Codestream& stream = picture.stream;
  const std::uint32_t count = picture.colors;
  std::uint8_t* const row = picture.row;
  for (std::uint32_t c = 0; c < count; ++c) {
    Channel& channel = picture.channels[c];
    const Rectangle own = SamplesIn(window, stream.component[channel.component]);
    const std::int32_t* data = nullptr;
    if (!own.empty()) {
      const opj_image_comp_t& made = decoder->component(channel.component);
      if (made.data == nullptr || made.w != own.width() || made.h != own.height()) return Outcome::kDamaged;
      data = made.data;
    }
    channel.samples.EnterWindow(window, data);
  }
  const bool has_differences = count == 3 && picture.boxes.has_differences;
  for (std::int64_t y = window.top; y < window.bottom; ++y) {
    const bool filled = canvas.For(window.width(), 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t x = begin; x < end; ++x) {
        for (std::uint32_t c = 0; c < count; ++c)
          row[x * count + c] = picture.channels[c].At(window.left + x, y);
        if (has_differences) ToRgb(row + x * count);
      }
    });
    if (!filled || !canvas.PutPart(window.left - stream.picture.left, y - stream.picture.top, window.width(),
                                   row, static_cast<int>(count)))
      return Outcome::kFailed;
  }
  for (std::uint32_t c = 0; c < count; ++c) picture.channels[c].samples.LeaveWindow();
  return Outcome::kDone;
}

// How a tile is decoded.
struct Windows {
  std::int64_t width = 0, height = 0;
  std::int64_t each = 0;   // OpenJPEG reads the tile anew after so many, because its lists grow with each
  std::int64_t bytes = 0;  // the most that OpenJPEG holds
};

// Each window takes some 10 ms: an element has three passes of about 4 ns for each of its bits, and the
// blocks at the edges of a window reach out of it. What is done for each window anew, takes as long at most.
Windows DivideTile(const Codestream& stream, const Tile& tile, const TileCost& cost) {
  constexpr std::int64_t kWork = 500'000, kFewRows = 32, kFewColumns = 256, kMostWindows = 32;
  // Bytes of a sample in a window: OpenJPEG has it in up to four stages, and half as many for the edges.
  constexpr std::int64_t kOfUse = 32, kOfSample = 24, kLeastLists = std::int64_t{16} << 20;
  const std::int64_t planes = std::clamp(cost.planes, 1, 31);
  const std::int64_t pixels =
      std::max<std::int64_t>(1, std::max(kWork, cost.work) / planes / std::int64_t{stream.components});
  Windows windows;
  windows.width = std::min(tile.area.width(), std::max(kFewColumns, pixels / kFewRows));
  windows.height = std::min(tile.area.height(), std::max<std::int64_t>(4, pixels / windows.width));
  // Each window adds to the lists of all blocks, and one block may have all data.
  const std::int64_t of_window =
      cpu::Plus(1, cpu::Plus(cpu::Times(kOfUse, cost.uses), static_cast<std::int64_t>(tile.data.size)));
  const std::int64_t lists = std::max(kLeastLists, cpu::Times(kOfSample, cost.samples));
  windows.each = std::clamp<std::int64_t>(lists / of_window, 1, kMostWindows);
  const std::int64_t count = std::min(windows.each, cpu::Times(tile.area.width() / windows.width + 1,
                                                               tile.area.height() / windows.height + 1));
  const std::int64_t border = 4 * cost.largest_block;
  const std::int64_t samples =
      std::min(cost.samples, cpu::Times(windows.width + border, windows.height + border, stream.components));
  windows.bytes =
      cpu::Plus(cpu::Plus(cost.bytes, cpu::Times(kOfSample, samples)), cpu::Times(count, of_window));
  return windows;
}

// The end of the next window: a multiple of 4, the most pixels that an element may stand for.
std::int64_t EndOf(std::int64_t begin, std::int64_t size, std::int64_t end) {
  return std::min(end, (begin + size + 3) / 4 * 4);
}

Outcome DecodeTile(Picture& picture, const Tile& tile, Canvas& canvas) {
  TileCost cost;
  if (!MeasureTile(picture.stream, tile, &cost)) return Outcome::kDamaged;
  for (std::uint32_t c = 0; c < picture.colors; ++c) {
    if (!picture.channels[c].samples.EnterTile(tile.area)) return Outcome::kDamaged;
  }
  const Windows windows = DivideTile(picture.stream, tile, cost);
  if (!canvas.Charge(windows.bytes)) return Outcome::kFailed;
  std::unique_ptr<TileDecoder> decoder;
  std::int64_t decoded = 0;
  Rectangle window;
  for (window.left = tile.area.left; window.left < tile.area.right; window.left = window.right) {
    window.right = EndOf(window.left, windows.width, tile.area.right);
    for (window.top = tile.area.top; window.top < tile.area.bottom; window.top = window.bottom) {
      window.bottom = EndOf(window.top, windows.height, tile.area.bottom);
      if (!canvas.Spend(cpu::kPace)) return Outcome::kFailed;
      if (cost.samples > 0) {
        if (decoded++ % windows.each == 0) {
          decoder = std::make_unique<TileDecoder>(picture.stream, tile);
          if (!decoder->Open()) return Outcome::kDamaged;
        }
        if (!decoder->Decode(window)) return Outcome::kDamaged;
      }
      if (const Outcome put = PutWindow(decoder.get(), window, picture, canvas); put != Outcome::kDone)
        return put;
    }
  }
  return Outcome::kDone;
}

// Lists all parts, those of a tile together.
Outcome ListParts(const Codestream& stream, std::int64_t count, Canvas& canvas, TilePart** parts) {
  *parts = reinterpret_cast<TilePart*>(
      canvas.Scratch(cpu::Times(count, static_cast<std::int64_t>(sizeof(TilePart)))));
  if (*parts == nullptr) return Outcome::kFailed;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!canvas.Spend(cpu::kPace / 64)) return Outcome::kFailed;
    if (!ReadTilePart(stream, &at, *parts + i)) return Outcome::kDamaged;
  }
  std::sort(*parts, *parts + count, [](const TilePart& a, const TilePart& b) {
    return a.tile != b.tile ? a.tile < b.tile : a.number < b.number;
  });
  return Outcome::kDone;
}

// Puts the parts of a tile together. `memory` has room for the data of all parts; it is null if there are as
// many parts as tiles, so that a tile of several parts means that another one is missing.
Outcome JoinParts(const TilePart* begin, const TilePart* end, std::uint8_t* memory, Canvas& canvas,
                  Tile* tile) {
  tile->data = begin->data;
  if (end - begin == 1) return Outcome::kDone;
  if (memory == nullptr) return Outcome::kDamaged;
  std::size_t at = 0;
  for (const TilePart* part = begin; part != end; ++part) {
    if (part->number != static_cast<std::uint32_t>(part - begin)) return Outcome::kDamaged;
    if (!canvas.Spend(1 + static_cast<std::int64_t>(part->data.size / 8))) return Outcome::kFailed;
    std::copy_n(part->data.data, part->data.size, memory + at);
    at += part->data.size;
  }
  tile->data = {memory, at};
  return Outcome::kDone;
}

Outcome DecodeTiles(Picture& picture, Canvas& canvas) {
  const Codestream& stream = picture.stream;
  const std::int64_t tiles = cpu::Times(stream.tiles_across(), stream.tiles_down());
  std::size_t count = 0;
  TilePart* parts = nullptr;
  if (const Outcome counted = CountParts(stream, canvas, &count); counted != Outcome::kDone) return counted;
  if (tiles > static_cast<std::int64_t>(count)) return Outcome::kDamaged;
  const Outcome listed = ListParts(stream, static_cast<std::int64_t>(count), canvas, &parts);
  if (listed != Outcome::kDone) return listed;
  const TilePart* const end = parts + count;
  std::uint8_t* memory = nullptr;
  if (end - parts > tiles) {
    memory = canvas.Scratch(static_cast<std::int64_t>(stream.tiles.size));
    if (memory == nullptr) return Outcome::kFailed;
  }
  const TilePart* part = parts;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const TilePart* const first = part;
    while (part != end && part->tile == i) ++part;
    Tile tile;
    if (first == part || !ReadTile(stream, *first, &tile)) return Outcome::kDamaged;
    if (const Outcome joined = JoinParts(first, part, memory, canvas, &tile); joined != Outcome::kDone)
      return joined;
    if (const Outcome done = DecodeTile(picture, tile, canvas); done != Outcome::kDone) return done;
  }
  return part == end ? Outcome::kDone : Outcome::kDamaged;
}

}  // namespace

Outcome DecodeJpeg2000(File file, Canvas& canvas) {
  Jpeg2000Boxes boxes;
  Codestream stream;
  Colors colors;
  if (!ReadBoxes(file, &boxes) || !ReadCodestream(boxes.codestream, &stream) ||
      !FindColors(stream, boxes, &colors))
    return Outcome::kDamaged;
  const Outcome opened = canvas.Open(stream.picture.width(), stream.picture.height());
  if (opened != Outcome::kDone) return opened;
  Picture picture{stream, boxes};
  picture.row = canvas.Scratch(cpu::Times(3, canvas.width()));
  if (picture.row == nullptr || !OpenChannels(colors, &picture, canvas)) return Outcome::kFailed;
  return DecodeTiles(picture, canvas);
}

}  // namespace rewire::kernel::image

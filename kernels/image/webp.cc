// SPDX-License-Identifier: Apache-2.0
// WebP: the file's chunks and lossless pictures are read here, lossy ones by libwebp. Opacity does not count,
// so libwebp sees neither that nor any other chunk.
#include <webp/decode.h>

#include <algorithm>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"
#include "rewire/kernels/image/numbers.h"
#include "rewire/kernels/image/webp_lossless.h"

namespace rewire::kernel::image {
namespace {

// How much of the file is decoded between two questions to the host.
constexpr std::size_t kPart = 4096;
constexpr std::int64_t kMostPixels = 12'000'000;

constexpr std::uint32_t NameOf(char a, char b, char c, char d) {
  std::uint32_t name = 0;
  for (const char letter : {a, b, c, d}) name = name << 8 | static_cast<std::uint8_t>(letter);
  return name;
}
enum Chunk : std::uint32_t {
  kLossy = NameOf('V', 'P', '8', ' '),
  kLossless = NameOf('V', 'P', '8', 'L'),
  kDescription = NameOf('V', 'P', '8', 'X'),
  kFrame = NameOf('A', 'N', 'M', 'F'),
};

struct WebpPicture {
  // The size of the whole.
  std::int64_t width = 0, height = 0;
  // The place of the first frame, which is all of a still picture.
  std::int64_t left = 0, top = 0, frame_width = 0, frame_height = 0;
  bool is_lossless = false;
  File data;
};

bool TakeChunk(Numbers& numbers, std::uint32_t* name, File* content) {
  const File tag = numbers.Part(4);
  *name = Numbers(tag).Take32(4);
  const std::uint64_t size = numbers.Take(4);
  *content = numbers.Part(size);
  // Chunks of an odd size are followed by a byte, which the last one may lack.
  if (size % 2 == 1 && numbers.left() > 0) numbers.Skip(1);
  return !numbers.failed();
}

// The first chunk of the name, or of a picture if `name` is 0.
Outcome FindChunk(File chunks, std::uint32_t name, Canvas& canvas, std::uint32_t* found, File* content) {
  Numbers numbers(chunks, 0, ByteOrder::kLittle);
  while (numbers.left() > 0) {
    if (!canvas.Spend(cpu::kPace / 256)) return Outcome::kFailed;
    if (!TakeChunk(numbers, found, content)) return Outcome::kDamaged;
    if (*found == name || (name == 0 && (*found == kLossy || *found == kLossless))) return Outcome::kDone;
  }
  return Outcome::kDamaged;
}

bool ReadFrameSize(WebpPicture* picture) {
  if (picture->is_lossless)
    return ReadLosslessSize(picture->data, &picture->frame_width, &picture->frame_height);
  int width = 0, height = 0;
  if (WebPGetInfo(picture->data.data, picture->data.size, &width, &height) == 0) return false;
  picture->frame_width = width;
  picture->frame_height = height;
  return true;
}

Outcome ReadChunks(File file, Canvas& canvas, WebpPicture* picture) {
  constexpr std::size_t kHead = 12;
  constexpr std::uint64_t kAnimated = 2;
  Numbers head(file, 4, ByteOrder::kLittle);
  const std::uint64_t size = head.Take(4);
  if (head.failed() || size < 4 || size > file.size - 8) return Outcome::kDamaged;
  const File chunks{file.data + kHead, static_cast<std::size_t>(size - 4)};
  std::uint32_t name = 0;
  File content;
  Numbers first(chunks, 0, ByteOrder::kLittle);
  if (!TakeChunk(first, &name, &content)) return Outcome::kDamaged;
  const bool is_described = name == kDescription;
  Numbers description(content, 0, ByteOrder::kLittle);
  const bool is_animated = is_described && (description.Take(4) & kAnimated) != 0;
  File within = chunks;
  if (is_animated) {
    const Outcome found = FindChunk(chunks, kFrame, canvas, &name, &content);
    if (found != Outcome::kDone) return found;
    Numbers frame(content, 0, ByteOrder::kLittle);
    picture->left = 2 * static_cast<std::int64_t>(frame.Take(3));
    picture->top = 2 * static_cast<std::int64_t>(frame.Take(3));
    frame.Skip(10);
    within = frame.Part(frame.left());
  }
  const Outcome found = FindChunk(within, 0, canvas, &name, &picture->data);
  if (found != Outcome::kDone) return found;
  picture->is_lossless = name == kLossless;
  // libwebp takes the length of the whole from the chunk's head, as long as it has a part only.
  constexpr std::size_t kChunkHead = 8;
  if (!picture->is_lossless)
    picture->data = {picture->data.data - kChunkHead, picture->data.size + kChunkHead};
  if (!ReadFrameSize(picture)) return Outcome::kDamaged;
  picture->width = is_described ? static_cast<std::int64_t>(description.Take(3)) + 1 : picture->frame_width;
  picture->height = is_described ? static_cast<std::int64_t>(description.Take(3)) + 1 : picture->frame_height;
  if (description.failed() && is_described) return Outcome::kDamaged;
  if (!is_animated && (picture->width != picture->frame_width || picture->height != picture->frame_height))
    return Outcome::kDamaged;
  const bool fits = picture->left + picture->frame_width <= picture->width &&
                    picture->top + picture->frame_height <= picture->height;
  return fits ? Outcome::kDone : Outcome::kDamaged;
}

struct DeleteDecoder {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
};

Outcome DecodeLossy(const WebpPicture& picture, Canvas& canvas) {
  const bool is_gray = canvas.pixels() == Pixels::kGray;
  const std::int64_t stride = 3 * (is_gray ? picture.frame_width : canvas.width());
  // Up to the last pixel of the last row.
  const std::int64_t size = cpu::Times(stride, picture.frame_height - 1) + 3 * picture.frame_width;
  std::uint8_t* rows = is_gray ? canvas.Scratch(size) : canvas.Row(picture.top) + 3 * picture.left;
  // Data of a few bytes may be all of the picture, which libwebp decodes without a question.
  if (cpu::Times(picture.frame_width, picture.frame_height) > kMostPixels) return Outcome::kDamaged;
  // The codec keeps some rows of blocks.
  constexpr std::int64_t kOfColumn = 256, kOfAll = 1 << 16;
  if (rows == nullptr || !canvas.Charge(kOfAll + cpu::Times(kOfColumn, picture.frame_width)))
    return Outcome::kFailed;
  const std::unique_ptr<WebPIDecoder, DeleteDecoder> decoder(
      WebPINewRGB(canvas.pixels() == Pixels::kBgr ? MODE_BGR : MODE_RGB, rows, static_cast<std::size_t>(size),
                  static_cast<int>(stride)));
  if (decoder == nullptr) return Outcome::kDamaged;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (std::size_t given = 0; status == VP8_STATUS_SUSPENDED && given < picture.data.size;) {
    if (!canvas.Spend(cpu::kPace)) return Outcome::kFailed;
    given = std::min(given + kPart, picture.data.size);
    status = WebPIUpdate(decoder.get(), picture.data.data, given);
  }
  if (status != VP8_STATUS_OK) return Outcome::kDamaged;
  for (std::int64_t y = 0; is_gray && y < picture.frame_height; ++y) {
    if (!canvas.PutPart(picture.left, picture.top + y, picture.frame_width, rows + y * stride, 3))
      return Outcome::kFailed;
  }
  return Outcome::kDone;
}

}  // namespace

Outcome DecodeWebp(File file, Canvas& canvas) {
  WebpPicture picture;
  if (const Outcome read = ReadChunks(file, canvas, &picture); read != Outcome::kDone) return read;
  if (const Outcome opened = canvas.Open(picture.width, picture.height); opened != Outcome::kDone)
    return opened;
  const bool is_whole = picture.width == picture.frame_width && picture.height == picture.frame_height;
  const std::int64_t bytes = cpu::Times(canvas.width(), canvas.height(), canvas.channels());
  if (!is_whole && !canvas.Blank(canvas.Row(0), bytes)) return Outcome::kFailed;
  return picture.is_lossless ? DecodeLossless(picture.data, picture.left, picture.top, canvas)
                             : DecodeLossy(picture, canvas);
}

}  // namespace rewire::kernel::image

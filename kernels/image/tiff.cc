// SPDX-License-Identifier: Apache-2.0
// TIFF, by libtiff, which makes red, green, blue and alpha of whatever a file has. It does so strip by strip
// or tile by tile.
#include <tiffio.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

// Pixels of libtiff are red in the lowest byte.
static_assert(std::endian::native == std::endian::little);

struct TiffSource {
  File file;
  std::uint64_t at = 0;
};

tmsize_t ReadTiff(thandle_t handle, void* out, tmsize_t bytes) {
  auto& source = *static_cast<TiffSource*>(handle);
  if (bytes <= 0 || source.at >= source.file.size) return 0;
  const auto count = std::min<std::uint64_t>(static_cast<std::uint64_t>(bytes), source.file.size - source.at);
  std::memcpy(out, source.file.data + source.at, count);
  source.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t WriteNothing(thandle_t /*handle*/, void* /*data*/, tmsize_t /*bytes*/) { return -1; }
toff_t SeekTiff(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<TiffSource*>(handle);
  source.at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source.at : source.file.size);
  return source.at;
}
int CloseNothing(thandle_t /*handle*/) { return 0; }
toff_t TiffSize(thandle_t handle) { return static_cast<TiffSource*>(handle)->file.size; }
int Quiet(TIFF* /*tiff*/, void* /*data*/, const char* /*module*/, const char* /*format*/,
          va_list /*values*/) {
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

// `most` limits the bytes of each thing that libtiff allocates.
Tiff OpenTiff(TiffSource* source, std::int64_t most) {
  const std::unique_ptr<TIFFOpenOptions, CloseTiff> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Quiet, nullptr);
  source->at = 0;
  // m: the file is read, not mapped.
  return Tiff(TIFFClientOpenExt("picture", "rm", source, ReadTiff, WriteNothing, SeekTiff, CloseNothing,
                                TiffSize, nullptr, nullptr, options.get()));
}

// Codecs that are widely used, and looked after.
bool IsTrusted(std::uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD:
    case COMPRESSION_WEBP:
      return true;
    default:
      return false;
  }
}

// Neither orientation nor transparency shall count.
void TakePixelsAsTheyAre(TIFF* tiff) {
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  std::uint16_t extra = 0;
  const std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds);
  constexpr std::uint16_t kMostExtra = 8;
  if (extra == 0 || extra > kMostExtra) return;
  std::uint16_t changed[kMostExtra];
  std::copy_n(kinds, extra, changed);
  // Colours that are multiplied by alpha already are left alone.
  std::replace(changed, changed + extra, std::uint16_t{EXTRASAMPLE_UNASSALPHA},
               std::uint16_t{EXTRASAMPLE_ASSOCALPHA});
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra, changed);
}

// Rows of a raster begin with the lowest one.
Outcome ReadStrips(TIFF* tiff, Canvas& canvas) {
  const std::int64_t width = canvas.width(), height = canvas.height();
  std::uint32_t stated = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &stated);
  const std::int64_t rows = std::clamp<std::int64_t>(stated, 1, height);
  auto* raster = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, width, rows)));
  if (raster == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < height; y += rows) {
    if (!canvas.Spend(cpu::Times(width, rows))) return Outcome::kFailed;
    if (TIFFReadRGBAStripExt(tiff, static_cast<std::uint32_t>(y), raster, 1) == 0) return Outcome::kDamaged;
    const std::int64_t count = std::min(rows, height - y);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t* row = raster + (count - 1 - i) * width;
      if (!canvas.Put(y + i, reinterpret_cast<const std::uint8_t*>(row), 4)) return Outcome::kFailed;
    }
  }
  return Outcome::kDone;
}

Outcome ReadTiles(TIFF* tiff, Canvas& canvas) {
  const std::int64_t width = canvas.width(), height = canvas.height();
  std::uint32_t tile_width = 0, tile_height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
  const std::int64_t tile = cpu::Times(tile_width, tile_height);
  auto* raster = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, tile)));
  std::uint8_t* rows = canvas.Scratch(cpu::Times(4, width, tile_height));
  if (raster == nullptr || rows == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < height; y += tile_height) {
    const std::int64_t count = std::min<std::int64_t>(tile_height, height - y);
    for (std::int64_t x = 0; x < width; x += tile_width) {
      if (!canvas.Spend(tile)) return Outcome::kFailed;
      const auto left = static_cast<std::uint32_t>(x), top = static_cast<std::uint32_t>(y);
      if (TIFFReadRGBATileExt(tiff, left, top, raster, 1) == 0) return Outcome::kDamaged;
      const std::int64_t columns = std::min<std::int64_t>(tile_width, width - x);
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(rows + 4 * (i * width + x), raster + (tile_height - 1 - i) * tile_width,
                    static_cast<std::size_t>(4 * columns));
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (!canvas.Put(y + i, rows + 4 * i * width, 4)) return Outcome::kFailed;
    }
  }
  return Outcome::kDone;
}

struct TiffHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::int64_t part = 0;  // pixels of a strip or tile
};

bool ReadTiffHeader(TIFF* tiff, TiffHeader* header) {
  std::uint16_t compression = 0;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &header->width) == 0 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &header->height) == 0)
    return false;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  std::uint32_t columns = header->width, rows = 0;
  if (TIFFIsTiled(tiff) != 0) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &columns);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows);
  } else {
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    rows = std::min(rows, header->height);
  }
  header->part = cpu::Times(columns, rows);
  return columns > 0 && rows > 0 && IsTrusted(compression);
}

}  // namespace

Outcome DecodeTiff(File file, Canvas& canvas) {
  // Directories are lists of numbers that the file has, each of which takes at most 8 times its bytes.
  const std::int64_t directory =
      cpu::Plus(std::int64_t{1} << 20, cpu::Times(8, static_cast<std::int64_t>(file.size)));
  TiffSource source{file};
  TiffHeader header;
  if (const Tiff tiff = OpenTiff(&source, directory); tiff == nullptr || !ReadTiffHeader(tiff.get(), &header))
    return Outcome::kDamaged;
  if (const Outcome opened = canvas.Open(header.width, header.height); opened != Outcome::kDone)
    return opened;
  // A strip or tile as it is in the file, and decoded, of up to 16 bytes a pixel.
  const std::int64_t part = cpu::Times(16, header.part);
  if (!canvas.Charge(cpu::Times(2, part))) return Outcome::kFailed;
  const Tiff tiff = OpenTiff(&source, cpu::Plus(directory, part));
  if (tiff == nullptr) return Outcome::kDamaged;
  TakePixelsAsTheyAre(tiff.get());
  char reason[1024];
  if (TIFFRGBAImageOK(tiff.get(), reason) == 0) return Outcome::kDamaged;
  return TIFFIsTiled(tiff.get()) != 0 ? ReadTiles(tiff.get(), canvas) : ReadStrips(tiff.get(), canvas);
}

}  // namespace rewire::kernel::image

// SPDX-License-Identifier: Apache-2.0
// TIFF, by libtiff, which makes red, green, blue and alpha of whatever a file has. It does so row by row, or
// tile by tile.
#include <tiffio.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"
#include "rewire/kernels/image/tiff_directory.h"

namespace rewire::kernel::image {
namespace {

// Pixels of libtiff are red in the lowest byte.
static_assert(std::endian::native == std::endian::little);

// The most that is decoded between two questions to the host: the bytes of a row, and of a part that has to
// be decoded at once.
constexpr std::int64_t kMostRow = std::int64_t{4} << 20, kMostPart = std::int64_t{4} << 20;

struct TiffSource {
  const TiffFile* file = nullptr;
  Canvas* canvas = nullptr;
  std::uint64_t at = 0;
  bool stopped = false;
};

tmsize_t ReadTiff(thandle_t handle, void* out, tmsize_t bytes) {
  auto& source = *static_cast<TiffSource*>(handle);
  source.stopped = source.stopped || !source.canvas->Spend(1 + std::max<tmsize_t>(bytes, 0) / 8);
  if (source.stopped || bytes <= 0) return 0;
  const std::size_t count = source.file->Read(source.at, out, static_cast<std::size_t>(bytes));
  source.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t WriteNothing(thandle_t /*handle*/, void* /*data*/, tmsize_t /*bytes*/) { return -1; }
toff_t SeekTiff(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<TiffSource*>(handle);
  source.at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source.at : source.file->size());
  return source.at;
}
int CloseNothing(thandle_t /*handle*/) { return 0; }
toff_t TiffSize(thandle_t handle) { return static_cast<TiffSource*>(handle)->file->size(); }
int Quiet(TIFF* /*tiff*/, void* /*data*/, const char* /*module*/, const char* /*format*/,
          va_list /*values*/) {
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
  void operator()(TIFFRGBAImage* image) const { TIFFRGBAImageEnd(image); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff OpenTiff(TiffSource* source) {
  const std::unique_ptr<TIFFOpenOptions, CloseTiff> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Quiet, nullptr);
  // m: the file is read, not mapped. c: strips are those of the file.
  return Tiff(TIFFClientOpenExt("picture", "rmc", source, ReadTiff, WriteNothing, SeekTiff, CloseNothing,
                                TiffSize, nullptr, nullptr, options.get()));
}

// Whether libtiff has read what the directory says.
bool IsSame(TIFF* tiff, const TiffDirectory& directory) {
  std::uint32_t width = 0, height = 0, part_width = 0, part_height = 0;
  std::uint16_t samples = 0, bits = 0, planes = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
  const bool is_tiled = TIFFIsTiled(tiff) != 0;
  if (is_tiled) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &part_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &part_height);
  } else {
    part_width = width;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &part_height);
    part_height = std::min(part_height, height);
  }
  return width == directory.width && height == directory.height && samples == directory.samples &&
         bits == directory.bits && (planes == PLANARCONFIG_SEPARATE) == directory.is_planar &&
         is_tiled == directory.is_tiled && part_width == directory.part_width &&
         part_height == directory.part_height &&
         (is_tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff)) == directory.parts;
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
  // Colors that are multiplied by alpha already are left alone.
  std::replace(changed, changed + extra, std::uint16_t{EXTRASAMPLE_UNASSALPHA},
               std::uint16_t{EXTRASAMPLE_ASSOCALPHA});
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra, changed);
}

// The parts of one picture are decoded with this.
struct TiffPicture {
  File file;
  const TiffDirectory& directory;
  TIFF* tiff;
  TIFFRGBAImage& image;
  Canvas& canvas;
};

// The codec of JPEG gets parts of at most the size that the directory states, in one scan.
bool IsPartPlain(const TiffPicture& picture, std::uint32_t part) {
  if (picture.directory.compression != COMPRESSION_JPEG) return true;
  const std::uint64_t place = TIFFGetStrileOffset(picture.tiff, part),
                      size = TIFFGetStrileByteCount(picture.tiff, part);
  const File& file = picture.file;
  if (place > file.size || size > file.size - place) return false;
  return IsPlainJpeg({file.data + place, static_cast<std::size_t>(size)}, picture.directory.part_width,
                     picture.directory.part_height);
}

// Colors lie in planes of their own, gray and palettes in the first one. `has_alpha` stands for the fourth
// plane, which may be black.
struct Planes {
  int colors = 1;
  bool has_fourth = false;
};

Planes PlanesOf(const TIFFRGBAImage& image) {
  if (image.isContig != 0) return {};
  switch (image.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_PALETTE:
      return {1, image.alpha != 0};
    default:
      return {3, image.alpha != 0};
  }
}

// Strip by strip, each row by row, as libtiff's own TIFFReadRGBAStrip does at once.
Outcome ReadRows(const TiffPicture& picture) {
  TIFF* tiff = picture.tiff;
  Canvas& canvas = picture.canvas;
  const std::int64_t width = canvas.width(), height = canvas.height(), rows = picture.directory.part_height;
  const Planes planes = PlanesOf(picture.image);
  const int count = planes.colors + (planes.has_fourth ? 1 : 0);
  if (picture.image.isContig == 0 && count > picture.directory.samples) return Outcome::kDamaged;
  const auto line = static_cast<std::int64_t>(TIFFScanlineSize(tiff));
  if (line <= 0 || line > kMostRow) return Outcome::kDamaged;
  // Rows of several planes meet when each has been read.
  const bool is_contiguous = picture.image.isContig != 0;
  const std::int64_t kept = is_contiguous ? 1 : rows;
  std::uint8_t* lines = canvas.Scratch(cpu::Times(line, kept, count));
  auto* raster = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, width)));
  if (lines == nullptr || raster == nullptr) return Outcome::kFailed;
  const auto read = [&](std::int64_t y, int plane, std::uint8_t* to) {
    if (!canvas.Spend(cpu::Times(2, line))) return Outcome::kFailed;
    const int done =
        TIFFReadScanline(tiff, to, static_cast<std::uint32_t>(y), static_cast<std::uint16_t>(plane));
    return done == 1 ? Outcome::kDone : Outcome::kDamaged;
  };
  const auto columns = static_cast<std::uint32_t>(width);
  for (std::int64_t top = 0; top < height; top += rows) {
    const std::int64_t strip_rows = std::min(rows, height - top);
    for (int plane = 0; plane < count; ++plane) {
      if (!IsPartPlain(picture, TIFFComputeStrip(tiff, static_cast<std::uint32_t>(top),
                                                 static_cast<std::uint16_t>(plane))))
        return Outcome::kDamaged;
      for (std::int64_t y = 0; !is_contiguous && y < strip_rows; ++y) {
        const Outcome done = read(top + y, plane, lines + (plane * rows + y) * line);
        if (done != Outcome::kDone) return done;
      }
    }
    for (std::int64_t y = 0; y < strip_rows; ++y) {
      if (is_contiguous) {
        if (const Outcome done = read(top + y, 0, lines); done != Outcome::kDone) return done;
        picture.image.put.contig(&picture.image, raster, 0, 0, columns, 1, 0, 0, lines);
      } else {
        const auto of = [&](int plane) { return lines + (plane * rows + y) * line; };
        const int second = planes.colors == 1 ? 0 : 1, third = planes.colors == 1 ? 0 : 2;
        picture.image.put.separate(&picture.image, raster, 0, 0, columns, 1, 0, 0, of(0), of(second),
                                   of(third), planes.has_fourth ? of(planes.colors) : nullptr);
      }
      if (!canvas.Put(top + y, reinterpret_cast<const std::uint8_t*>(raster), 4)) return Outcome::kFailed;
    }
  }
  return Outcome::kDone;
}

// Strips whose rows share colors are read at once. Rows of a raster begin with the lowest one.
Outcome ReadStrips(const TiffPicture& picture) {
  Canvas& canvas = picture.canvas;
  const std::int64_t width = canvas.width(), height = canvas.height(), rows = picture.directory.part_height;
  auto* raster = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, width, rows)));
  if (raster == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < height; y += rows) {
    if (!canvas.Spend(cpu::Times(width, rows))) return Outcome::kFailed;
    const auto top = static_cast<std::uint32_t>(y);
    if (!IsPartPlain(picture, TIFFComputeStrip(picture.tiff, top, 0)) ||
        TIFFReadRGBAStripExt(picture.tiff, top, raster, 1) == 0)
      return Outcome::kDamaged;
    const std::int64_t count = std::min(rows, height - y);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t* row = raster + (count - 1 - i) * width;
      if (!canvas.Put(y + i, reinterpret_cast<const std::uint8_t*>(row), 4)) return Outcome::kFailed;
    }
  }
  return Outcome::kDone;
}

Outcome ReadTiles(const TiffPicture& picture) {
  Canvas& canvas = picture.canvas;
  const std::int64_t width = canvas.width(), height = canvas.height(),
                     tile_width = picture.directory.part_width, tile_height = picture.directory.part_height;
  const std::int64_t tile = cpu::Times(tile_width, tile_height);
  auto* raster = reinterpret_cast<std::uint32_t*>(canvas.Scratch(cpu::Times(4, tile)));
  if (raster == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < height; y += tile_height) {
    const std::int64_t count = std::min<std::int64_t>(tile_height, height - y);
    for (std::int64_t x = 0; x < width; x += tile_width) {
      if (!canvas.Spend(tile)) return Outcome::kFailed;
      const auto left = static_cast<std::uint32_t>(x), top = static_cast<std::uint32_t>(y);
      for (std::int64_t plane = 0; plane < picture.directory.planes(); ++plane) {
        const auto sample = static_cast<std::uint16_t>(plane);
        if (!IsPartPlain(picture, TIFFComputeTile(picture.tiff, left, top, 0, sample)))
          return Outcome::kDamaged;
      }
      if (TIFFReadRGBATileExt(picture.tiff, left, top, raster, 1) == 0) return Outcome::kDamaged;
      const std::int64_t columns = std::min<std::int64_t>(tile_width, width - x);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t* row = raster + (tile_height - 1 - i) * tile_width;
        if (!canvas.PutPart(x, y + i, columns, reinterpret_cast<const std::uint8_t*>(row), 4))
          return Outcome::kFailed;
      }
    }
  }
  return Outcome::kDone;
}

// The memory that libtiff allocates in all: lists of the parts, one part as it is in the file, tables, and
// for some codecs rows, a part, or the window that packed data may refer to.
std::int64_t BytesOf(const TiffDirectory& directory, bool is_whole) {
  constexpr std::int64_t kOfAll = 1 << 18, kOfPart = 64, kOfWindow = std::int64_t{132} << 20;
  std::int64_t bytes = cpu::Plus(kOfAll, cpu::Times(kOfPart, directory.parts));
  bytes = cpu::Plus(bytes, cpu::Times(2, directory.most_packed));
  bytes = cpu::Plus(bytes, cpu::Times(directory.compression == COMPRESSION_JPEG ? 96 : 32,
                                      cpu::Plus(directory.part_width, directory.row_bytes())));
  if (is_whole)
    bytes = cpu::Plus(bytes,
                      cpu::Times(2, directory.part_bytes(), std::min<std::int64_t>(directory.planes(), 4)));
  return directory.compression == COMPRESSION_ZSTD ? cpu::Plus(bytes, kOfWindow) : bytes;
}

Outcome ReadPicture(const TiffPicture& picture, bool is_whole) {
  if (picture.directory.is_tiled) return ReadTiles(picture);
  return is_whole ? ReadStrips(picture) : ReadRows(picture);
}

}  // namespace

Outcome DecodeTiff(File file, Canvas& canvas) {
  TiffFile checked;
  TiffDirectory directory;
  if (!checked.Open(file, &directory) || directory.row_bytes() > kMostRow) return Outcome::kDamaged;
  if (const Outcome opened = canvas.Open(directory.width, directory.height); opened != Outcome::kDone)
    return opened;
  if (!canvas.Charge(BytesOf(directory, directory.is_tiled))) return Outcome::kFailed;
  TiffSource source{&checked, &canvas};
  const Tiff tiff = OpenTiff(&source);
  if (source.stopped) return Outcome::kFailed;
  if (tiff == nullptr || !IsSame(tiff.get(), directory)) return Outcome::kDamaged;
  TakePixelsAsTheyAre(tiff.get());
  char reason[1024];
  TIFFRGBAImage image;
  if (TIFFRGBAImageOK(tiff.get(), reason) == 0 || TIFFRGBAImageBegin(&image, tiff.get(), 1, reason) == 0)
    return Outcome::kDamaged;
  const std::unique_ptr<TIFFRGBAImage, CloseTiff> end(&image);
  std::uint16_t across = 1, down = 1;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_YCBCRSUBSAMPLING, &across, &down);
  const bool is_shared = image.photometric == PHOTOMETRIC_YCBCR && (across != 1 || down != 1);
  const bool is_whole = directory.is_tiled || is_shared;
  if (is_whole &&
      std::max(directory.part_bytes(), cpu::Times(directory.part_width, directory.part_height)) > kMostPart)
    return Outcome::kDamaged;
  if (!canvas.Charge(BytesOf(directory, is_whole))) return Outcome::kFailed;
  const Outcome done = ReadPicture({file, directory, tiff.get(), image, canvas}, is_whole);
  return source.stopped ? Outcome::kFailed : done;
}

}  // namespace rewire::kernel::image

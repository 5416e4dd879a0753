// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/codecs/whole_decode.h"

#include <openjpeg.h>
#include <tiffio.h>
#include <webp/decode.h>

#include <algorithm>
#include <memory>

#include "rewire/tests/fuzz/codecs/memory_file.h"

namespace rewire::test {
namespace {

std::optional<Bytes> WholeTiff(const Bytes& file) {
  MemoryFile source{file};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(
      TIFFClientOpen(
          "whole", "rm", &source,
          [](thandle_t s, void* data, tmsize_t size) {
            return static_cast<tmsize_t>(
                static_cast<MemoryFile*>(s)->Read(data, static_cast<std::size_t>(size)));
          },
          [](thandle_t, void*, tmsize_t) -> tmsize_t { return -1; },
          [](thandle_t s, toff_t offset, int whence) -> toff_t {
            auto& from = *static_cast<MemoryFile*>(s);
            return from.at = offset + (whence == SEEK_SET   ? 0
                                       : whence == SEEK_CUR ? from.at
                                                            : from.bytes.size());
          },
          [](thandle_t) { return 0; },
          [](thandle_t s) -> toff_t { return static_cast<MemoryFile*>(s)->bytes.size(); }, nullptr, nullptr),
      TIFFClose);
  if (tiff == nullptr) return std::nullopt;
  std::uint32_t width = 0, height = 0;
  std::uint16_t extra = 0, *kinds = nullptr;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds);
  std::vector<std::uint32_t> raster(std::size_t{width} * height);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) == 0)
    return std::nullopt;
  Bytes pixels;
  for (const std::uint32_t pixel : raster) {
    for (int c = 0; c < 3 && extra == 0; ++c) pixels.push_back(static_cast<std::uint8_t>(pixel >> (8 * c)));
  }
  return pixels;
}

std::optional<Bytes> WholeJpeg2000(const Bytes& file) {
  MemoryFile source{file};
  opj_stream_t* stream = opj_stream_default_create(OPJ_TRUE);
  opj_stream_set_user_data(stream, &source, nullptr);
  opj_stream_set_user_data_length(stream, file.size());
  opj_stream_set_read_function(stream, [](void* data, OPJ_SIZE_T size, void* s) {
    const OPJ_SIZE_T count = static_cast<MemoryFile*>(s)->Read(data, size);
    return count == 0 ? static_cast<OPJ_SIZE_T>(-1) : count;
  });
  opj_codec_t* codec = opj_create_decompress(file[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* image = nullptr;
  const bool is_read = opj_setup_decoder(codec, &parameters) != OPJ_FALSE &&
                       opj_read_header(stream, codec, &image) != OPJ_FALSE &&
                       opj_decode(codec, stream, image) != OPJ_FALSE;
  std::optional<Bytes> pixels;
  if (is_read) {
    pixels.emplace();
    const OPJ_UINT32 count = image->numcomps >= 3 ? 3 : 1;
    const bool is_compared = std::all_of(image->comps, image->comps + image->numcomps,
                                         [](const opj_image_comp_t& c) { return c.sgnd == 0; });
    for (OPJ_UINT32 y = image->y0; is_compared && y < image->y1; ++y) {
      for (OPJ_UINT32 x = image->x0; x < image->x1; ++x) {
        for (OPJ_UINT32 c = 0; c < 3; ++c) {
          const opj_image_comp_t& component = image->comps[c % count];
          // The sample at the pixel's place, or the last one before it.
          const OPJ_UINT32 column = std::max(x / component.dx, component.x0) - component.x0,
                           row = std::max(y / component.dy, component.y0) - component.y0;
          const int bits = static_cast<int>(component.prec);
          const int value = std::clamp(component.data[row * component.w + column], 0, (1 << bits) - 1);
          pixels->push_back(static_cast<std::uint8_t>(bits > 8 ? value >> (bits - 8) : value << (8 - bits)));
        }
      }
    }
  }
  opj_image_destroy(image);
  opj_destroy_codec(codec);
  opj_stream_destroy(stream);
  return pixels;
}

std::optional<Bytes> WholeWebp(const Bytes& file) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK) return std::nullopt;
  if (features.has_animation != 0) return Bytes();
  int width = 0, height = 0;
  std::uint8_t* made = WebPDecodeRGB(file.data(), file.size(), &width, &height);
  if (made == nullptr) return std::nullopt;
  Bytes pixels(made,
               made + std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  WebPFree(made);
  return pixels;
}

}  // namespace

std::optional<Bytes> DecodeWhole(std::string_view format, const Bytes& file) {
  if (format == "tiff") return WholeTiff(file);
  if (format == "jpeg2000") return WholeJpeg2000(file);
  if (format == "webp") return WholeWebp(file);
  return Bytes();
}

}  // namespace rewire::test

// SPDX-License-Identifier: Apache-2.0
// Seeds of the formats with the most forms: TIFF by libtiff, JPEG 2000 by OpenJPEG.
#include <openjpeg.h>
#include <tiffio.h>

#include <algorithm>
#include <vector>

#include "rewire/tests/fuzz/codecs/jpeg2000_encoder.h"
#include "rewire/tests/fuzz/codecs/memory_file.h"
#include "rewire/tests/fuzz/codecs/picture_seeds.h"

namespace rewire::test {
namespace {

using hostile::Dice;

TIFF* OpenTiff(MemoryFile* memory, const char* mode) {
  // Some forms make libtiff talk; whether they are written is seen when they are read.
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
  return TIFFClientOpen(
      "seed", mode, memory,
      [](thandle_t m, void* data, tmsize_t size) {
        return static_cast<tmsize_t>(static_cast<MemoryFile*>(m)->Read(data, static_cast<std::size_t>(size)));
      },
      [](thandle_t m, void* data, tmsize_t size) {
        return static_cast<tmsize_t>(
            static_cast<MemoryFile*>(m)->Write(data, static_cast<std::size_t>(size)));
      },
      [](thandle_t m, toff_t offset, int whence) {
        auto& file = *static_cast<MemoryFile*>(m);
        file.at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : file.bytes.size());
        return static_cast<toff_t>(file.at);
      },
      [](thandle_t) { return 0; },
      [](thandle_t m) { return static_cast<toff_t>(static_cast<MemoryFile*>(m)->bytes.size()); }, nullptr,
      nullptr);
}

struct TiffForm {
  std::uint16_t compression, photometric, bits, samples;
  bool is_planar, is_tiled;
};

TiffForm ChooseTiff(Dice& dice) {
  static constexpr std::uint16_t kCodecs[] = {
      COMPRESSION_NONE, COMPRESSION_LZW,       COMPRESSION_ADOBE_DEFLATE,
      COMPRESSION_JPEG, COMPRESSION_PACKBITS,  COMPRESSION_CCITTRLE,
      COMPRESSION_ZSTD, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4};
  static constexpr std::uint16_t kColors[] = {PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_MINISWHITE,
                                              PHOTOMETRIC_PALETTE,    PHOTOMETRIC_RGB,
                                              PHOTOMETRIC_SEPARATED,  PHOTOMETRIC_YCBCR};
  TiffForm form{kCodecs[dice.Below(9)], kColors[dice.Below(6)], 8, 1, dice.OneIn(4), dice.OneIn(3)};
  const bool is_fax = form.compression == COMPRESSION_CCITTRLE || form.compression == COMPRESSION_CCITTFAX3 ||
                      form.compression == COMPRESSION_CCITTFAX4;
  if (form.compression == COMPRESSION_ZSTD && !dice.OneIn(4)) form.compression = COMPRESSION_LZW;
  if (is_fax) form.photometric = PHOTOMETRIC_MINISWHITE;
  if (form.compression == COMPRESSION_JPEG && form.photometric == PHOTOMETRIC_PALETTE)
    form.photometric = PHOTOMETRIC_RGB;
  switch (form.photometric) {
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
      form.samples = 3;
      break;
    case PHOTOMETRIC_SEPARATED:
      form.samples = 4;
      break;
    default:
      break;
  }
  if (form.samples == 3 && form.photometric == PHOTOMETRIC_RGB && form.compression != COMPRESSION_JPEG &&
      dice.OneIn(3))
    form.samples = 4;
  if (form.samples == 1) form.bits = is_fax ? 1 : static_cast<std::uint16_t>(1 << dice.Below(4));
  if (form.compression == COMPRESSION_JPEG) form.bits = 8;
  if (form.photometric == PHOTOMETRIC_RGB && form.compression != COMPRESSION_JPEG && dice.OneIn(3))
    form.bits = 16;
  if (form.photometric == PHOTOMETRIC_YCBCR) form.is_planar = false;
  return form;
}

}  // namespace

Bytes MakeTiff(const Drawing& drawing, Dice& dice, std::string* name) {
  const TiffForm form = ChooseTiff(dice);
  *name = "codec " + std::to_string(form.compression) + " colors " + std::to_string(form.photometric) +
          " bits " + std::to_string(form.bits) + " samples " + std::to_string(form.samples) +
          (form.is_planar ? " planar" : "") + (form.is_tiled ? " tiled" : "");
  static constexpr const char* kModes[] = {"wl", "wb", "wl8", "wb8"};
  MemoryFile memory;
  TIFF* tiff = OpenTiff(&memory, kModes[dice.Below(4)]);
  const auto set = [&](std::uint32_t tag, auto... values) { TIFFSetField(tiff, tag, values...); };
  set(TIFFTAG_IMAGEWIDTH, drawing.width);
  set(TIFFTAG_IMAGELENGTH, drawing.height);
  set(TIFFTAG_BITSPERSAMPLE, form.bits);
  set(TIFFTAG_SAMPLESPERPIXEL, form.samples);
  set(TIFFTAG_COMPRESSION, form.compression);
  set(TIFFTAG_PHOTOMETRIC, form.photometric);
  set(TIFFTAG_PLANARCONFIG, form.is_planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (form.photometric == PHOTOMETRIC_RGB && form.samples == 4) {
    const std::uint16_t kinds[] = {static_cast<std::uint16_t>(dice.Below(3))};
    set(TIFFTAG_EXTRASAMPLES, 1, kinds);
  }
  if (form.photometric == PHOTOMETRIC_YCBCR) {
    if (form.compression == COMPRESSION_JPEG) set(TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    const int down = 1 << dice.Below(2);
    set(TIFFTAG_YCBCRSUBSAMPLING, down == 2 || dice.OneIn(2) ? 2 : 1, down);
  }
  if (form.photometric == PHOTOMETRIC_PALETTE) {
    std::vector<std::uint16_t> colors(static_cast<std::size_t>(1) << form.bits);
    for (std::size_t i = 0; i < colors.size(); ++i)
      colors[i] = static_cast<std::uint16_t>(i * 65535 / colors.size());
    set(TIFFTAG_COLORMAP, colors.data(), colors.data(), colors.data());
  }
  if ((form.compression == COMPRESSION_LZW || form.compression == COMPRESSION_ADOBE_DEFLATE) &&
      form.bits >= 8 && dice.OneIn(2))
    set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
  if (form.is_tiled) {
    set(TIFFTAG_TILEWIDTH, 16 * (1 + static_cast<int>(dice.Below(3))));
    set(TIFFTAG_TILELENGTH, 16 * (1 + static_cast<int>(dice.Below(3))));
  } else {
    set(TIFFTAG_ROWSPERSTRIP, dice.OneIn(2) ? drawing.height : 8 * (1 + static_cast<int>(dice.Below(4))));
  }
  // The parts' bytes are taken from the drawing in turn, whatever they mean.
  Bytes part(static_cast<std::size_t>(form.is_tiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff)));
  const std::uint32_t parts = form.is_tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    for (std::uint8_t& byte : part) byte = drawing.pixels[at++ % drawing.pixels.size()];
    if (form.is_tiled) {
      TIFFWriteEncodedTile(tiff, i, part.data(), static_cast<tmsize_t>(part.size()));
    } else {
      const std::uint32_t per_plane = TIFFNumberOfStrips(tiff) / (form.is_planar ? form.samples : 1U);
      std::uint32_t rows = 0;
      TIFFGetField(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
      const std::uint32_t begin = i % per_plane * rows;
      const auto size =
          TIFFVStripSize(tiff, std::min(rows, static_cast<std::uint32_t>(drawing.height) - begin));
      TIFFWriteEncodedStrip(tiff, i, part.data(), size);
    }
  }
  TIFFWriteDirectory(tiff);
  TIFFClose(tiff);
  return memory.bytes;
}

Bytes MakeJpeg2000(const Drawing& drawing, Dice& dice, std::string* name) {
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  const int count =
      drawing.channels == 1 ? 1 + static_cast<int>(dice.Below(2)) : 3 + static_cast<int>(dice.Below(2));
  const bool is_subsampled = dice.OneIn(5), has_boxes = dice.OneIn(2);
  parameters.irreversible = dice.OneIn(2) ? 1 : 0;
  parameters.tcp_mct = count >= 3 && !is_subsampled && dice.OneIn(2) ? 1 : 0;
  parameters.cblockw_init = 16 << dice.Below(3);
  parameters.cblockh_init = 16 << dice.Below(3);
  parameters.prog_order = static_cast<OPJ_PROG_ORDER>(dice.Below(5));
  parameters.mode = dice.OneIn(4) ? static_cast<int>(dice.Below(64)) : 0;
  parameters.csty = dice.OneIn(3) ? static_cast<int>(2 * dice.Below(4)) : 0;
  parameters.tcp_numlayers = 1 + static_cast<int>(dice.Below(3));
  for (int i = 0; i < parameters.tcp_numlayers; ++i)
    parameters.tcp_rates[i] = i + 1 == parameters.tcp_numlayers ? 0 : static_cast<float>(20 - 5 * i);
  parameters.cp_disto_alloc = 1;
  if (dice.OneIn(3)) {
    parameters.csty |= 1;
    parameters.res_spec = 1 + static_cast<int>(dice.Below(2));
    for (int i = 0; i < parameters.res_spec; ++i) {
      parameters.prcw_init[i] = 64 << dice.Below(3);
      parameters.prch_init[i] = 64 << dice.Below(3);
    }
  }
  if (dice.OneIn(4)) {
    parameters.image_offset_x0 = static_cast<int>(dice.Below(40));
    parameters.image_offset_y0 = static_cast<int>(dice.Below(40));
  }
  // The shortest side of any tile's components; OpenJPEG cannot halve a side of one element.
  int shortest = std::min(drawing.width, drawing.height);
  if (dice.OneIn(3)) {
    parameters.tile_size_on = OPJ_TRUE;
    parameters.cp_tx0 = parameters.image_offset_x0;
    parameters.cp_ty0 = parameters.image_offset_y0;
    parameters.cp_tdx = 16 + static_cast<int>(dice.Below(100));
    parameters.cp_tdy = 16 + static_cast<int>(dice.Below(100));
    const auto rest = [](int length, int tile) { return length % tile == 0 ? tile : length % tile; };
    shortest =
        std::min({shortest, rest(drawing.width, parameters.cp_tdx), rest(drawing.height, parameters.cp_tdy)});
  }
  const int least = is_subsampled ? 4 : 2;
  parameters.numresolution = 1 + static_cast<int>(dice.Below(6));
  while (parameters.numresolution > 1 && (least << (parameters.numresolution - 1)) > shortest)
    --parameters.numresolution;
  *name = std::to_string(count) + " components, " + std::to_string(parameters.numresolution) +
          " levels, mode " + std::to_string(parameters.mode) +
          (parameters.tile_size_on != 0 ? " tiled" : "") + (is_subsampled ? " subsampled" : "") +
          (has_boxes ? " boxes" : "");
  const int depth = dice.OneIn(4) ? 1 + static_cast<int>(dice.Below(16)) : 8;
  std::vector<Jpeg2000Step> steps(static_cast<std::size_t>(count));
  for (std::size_t i = 1; is_subsampled && i < steps.size(); ++i) steps[i] = {2, 2};
  Bytes file = EncodeJpeg2000(parameters, drawing, steps, depth, has_boxes);
  // A color of half the size may have no sample.
  if (file.empty())
    file = EncodeJpeg2000(parameters, drawing, std::vector<Jpeg2000Step>(steps.size()), depth, has_boxes);
  if (!file.empty()) return file;
  *name += " (not made)";
  return {0xFF, 0x4F, 0xFF, 0x51};
}

}  // namespace rewire::test

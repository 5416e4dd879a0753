// SPDX-License-Identifier: Apache-2.0
// Seeds of formats that have libraries for their pixels: libjpeg-turbo, libpng and libwebp.
#include "rewire/tests/fuzz/codecs/picture_seeds.h"

#include <cstdio>
#include <cstdlib>
// After <cstdio>, which it needs.
#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

#include <algorithm>

namespace rewire::test {
namespace {

using hostile::Dice;

void Append(Bytes* file, const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const std::uint8_t*>(bytes);
  file->insert(file->end(), begin, begin + size);
}

void PutLittle(Bytes* file, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) file->push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

std::uint8_t ValueAt(const Drawing& drawing, int x, int y, int channel) {
  const int at = (y * drawing.width + x) * drawing.channels + std::min(channel, drawing.channels - 1);
  return drawing.pixels[static_cast<std::size_t>(at)];
}

}  // namespace

Drawing Draw(int width, int height, int channels, Dice& dice) {
  Drawing drawing{width, height, channels, {}};
  const auto noise = dice.Below(4) * 20;
  const int across = static_cast<int>(dice.Below(9)), down = static_cast<int>(dice.Below(9));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const auto slope = static_cast<std::uint64_t>(across * x + down * y + 60 * c);
        drawing.pixels.push_back(static_cast<std::uint8_t>(slope + dice.Below(noise + 1)));
      }
    }
  }
  return drawing;
}

Bytes MakeBmp(const Drawing& drawing, Dice& dice, std::string* form) {
  static constexpr int kBits[] = {1, 2, 4, 8, 16, 24, 32};
  const int bits = kBits[dice.Below(7)];
  const bool has_runs = bits == 8 && dice.OneIn(2), has_masks = (bits == 16 || bits == 32) && dice.OneIn(2);
  const bool from_top = !has_runs && dice.OneIn(3);
  const std::uint32_t colors = bits <= 8 ? 1U << bits : 0;
  *form = std::to_string(bits) + " bits" + (has_runs ? " in runs" : has_masks ? " with masks" : "");
  Bytes rows;
  for (int i = 0; i < drawing.height; ++i) {
    const int y = from_top ? i : drawing.height - 1 - i;
    if (has_runs) {
      for (int x = 0; x < drawing.width; ++x) {
        rows.push_back(1);
        rows.push_back(ValueAt(drawing, x, y, 0));
      }
      PutLittle(&rows, 0, 2);
      continue;
    }
    const std::size_t begin = rows.size();
    std::uint64_t kept = 0;
    int kept_bits = 0;
    for (int x = 0; x < drawing.width; ++x) {
      std::uint64_t pixel = 0;
      for (int c = 0; c < 3; ++c) pixel |= static_cast<std::uint64_t>(ValueAt(drawing, x, y, c)) << (8 * c);
      pixel &= (std::uint64_t{1} << bits) - 1;
      if (bits >= 8) {
        PutLittle(&rows, pixel, bits / 8);
        continue;
      }
      kept = kept << bits | pixel;
      kept_bits += bits;
      if (kept_bits == 8 || x + 1 == drawing.width) {
        rows.push_back(static_cast<std::uint8_t>(kept << (8 - kept_bits)));
        kept = 0;
        kept_bits = 0;
      }
    }
    while ((rows.size() - begin) % 4 != 0) rows.push_back(0);
  }
  Bytes file = {'B', 'M'};
  const std::uint32_t place = 14 + 40 + 4 * colors + (has_masks ? 12U : 0U);
  PutLittle(&file, place + rows.size(), 4);
  PutLittle(&file, 0, 4);
  PutLittle(&file, place, 4);
  PutLittle(&file, 40, 4);
  PutLittle(&file, static_cast<std::uint32_t>(drawing.width), 4);
  PutLittle(&file, static_cast<std::uint32_t>(from_top ? -drawing.height : drawing.height), 4);
  PutLittle(&file, 1, 2);
  PutLittle(&file, static_cast<std::uint32_t>(bits), 2);
  PutLittle(&file, has_runs ? 1 : has_masks ? 3 : 0, 4);
  PutLittle(&file, rows.size(), 4);
  PutLittle(&file, 0, 8);
  PutLittle(&file, colors, 4);
  PutLittle(&file, 0, 4);
  if (has_masks) {
    for (const std::uint32_t mask : {0xF800U, 0x7E0U, 0x1FU}) PutLittle(&file, mask, 4);
  }
  for (std::uint32_t i = 0; i < colors; ++i) PutLittle(&file, i * 0x10305U, 4);
  Append(&file, rows.data(), rows.size());
  return file;
}

Bytes MakePnm(const Drawing& drawing, Dice& dice, std::string* form) {
  const int kind = 1 + static_cast<int>(dice.Below(6));
  *form = "P" + std::to_string(kind);
  const bool is_bits = kind == 1 || kind == 4, is_text = kind <= 3;
  const int channels = kind == 3 || kind == 6 ? 3 : 1;
  const std::uint64_t most = is_bits ? 1 : dice.OneIn(2) ? 255 : 1 + dice.Below(65535);
  std::string text = *form + "\n# a comment\n" + std::to_string(drawing.width) + " " +
                     std::to_string(drawing.height) + "\n" + (is_bits ? "" : std::to_string(most) + "\n");
  for (int y = 0; y < drawing.height; ++y) {
    std::uint32_t byte = 0;
    for (int x = 0; x < drawing.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const std::uint64_t value = ValueAt(drawing, x, y, c) % (most + 1);
        if (is_text) {
          text += std::to_string(value) + (dice.OneIn(9) ? "\n" : " ");
        } else if (is_bits) {
          byte |= static_cast<std::uint32_t>(value) << (7 - x % 8);
          if (x % 8 != 7 && x + 1 != drawing.width) continue;
          text += static_cast<char>(byte);
          byte = 0;
        } else {
          if (most > 255) text += static_cast<char>(value >> 8);
          text += static_cast<char>(value);
        }
      }
    }
  }
  return {text.begin(), text.end()};
}

Bytes MakePng(const Drawing& drawing, Dice& dice, std::string* form) {
  static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE};
  const int type = kTypes[dice.Below(5)];
  const bool may_be_narrow = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
  const int depth = may_be_narrow && dice.OneIn(2)                    ? 1 << dice.Below(3)
                    : type != PNG_COLOR_TYPE_PALETTE && dice.OneIn(3) ? 16
                                                                      : 8;
  const bool is_interlaced = dice.OneIn(3);
  *form = "type " + std::to_string(type) + " depth " + std::to_string(depth) +
          (is_interlaced ? " interlaced" : "");
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, std::size_t size) {
        Append(static_cast<Bytes*>(png_get_io_ptr(p)), data, size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(drawing.width), static_cast<png_uint_32>(drawing.height),
               depth, type, is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (type == PNG_COLOR_TYPE_PALETTE) {
    png_color colors[256];
    for (int i = 0; i < 256; ++i)
      colors[i] = {static_cast<png_byte>(i), static_cast<png_byte>(255 - i), static_cast<png_byte>(i * 7)};
    png_set_PLTE(png, info, colors, 1 << depth);
  }
  png_write_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<Bytes> rows;
  std::vector<png_bytep> places;
  for (int y = 0; y < drawing.height; ++y) {
    Bytes row;
    for (std::size_t i = 0; i < row_bytes; ++i)
      row.push_back(ValueAt(drawing, static_cast<int>(i) % drawing.width, y, static_cast<int>(i) % 3));
    rows.push_back(std::move(row));
  }
  for (Bytes& row : rows) places.push_back(row.data());
  png_write_image(png, places.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

Bytes MakeJpeg(const Drawing& drawing, Dice& dice, std::string* form) {
  const int channels = dice.OneIn(4) ? 1 : dice.OneIn(4) ? 4 : 3;
  const bool is_progressive = dice.OneIn(3), has_restarts = dice.OneIn(4), is_arithmetic = dice.OneIn(6);
  *form = std::to_string(channels) + " channels" + (is_progressive ? " progressive" : "") +
          (has_restarts ? " restarts" : "") + (is_arithmetic ? " arithmetic" : "");
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* made = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &made, &size);
  info.image_width = static_cast<JDIMENSION>(drawing.width);
  info.image_height = static_cast<JDIMENSION>(drawing.height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 20 + static_cast<int>(dice.Below(80)), TRUE);
  if (channels == 3) {
    info.comp_info[0].h_samp_factor = 1 + static_cast<int>(dice.Below(2));
    info.comp_info[0].v_samp_factor = 1 + static_cast<int>(dice.Below(2));
  }
  if (is_progressive) jpeg_simple_progression(&info);
  if (has_restarts) info.restart_interval = 1 + static_cast<unsigned>(dice.Below(5));
  info.arith_code = is_arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&info, TRUE);
  Bytes row(static_cast<std::size_t>(drawing.width * channels));
  while (info.next_scanline < info.image_height) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = ValueAt(drawing, static_cast<int>(i) / channels, static_cast<int>(info.next_scanline),
                       static_cast<int>(i) % channels);
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes file(made, made + size);
  std::free(made);
  return file;
}

Bytes MakeWebp(const Drawing& drawing, Dice& dice, std::string* form) {
  WebPConfig config;
  WebPConfigInit(&config);
  config.lossless = dice.OneIn(2) ? 1 : 0;
  config.method = static_cast<int>(dice.Below(5));
  config.quality = static_cast<float>(dice.Below(101));
  config.segments = 1 + static_cast<int>(dice.Below(4));
  config.partitions = static_cast<int>(dice.Below(4));
  config.filter_type = static_cast<int>(dice.Below(2));
  const bool has_alpha = dice.OneIn(3), is_animation = dice.OneIn(4);
  *form = std::string(config.lossless != 0 ? "lossless" : "lossy") + (has_alpha ? " alpha" : "") +
          (is_animation ? " animation" : "");
  WebPPicture picture;
  WebPPictureInit(&picture);
  picture.use_argb = config.lossless;
  picture.width = drawing.width;
  picture.height = drawing.height;
  Bytes pixels;
  for (int i = 0; i < drawing.width * drawing.height; ++i) {
    for (int c = 0; c < 4; ++c) {
      const std::uint8_t value = ValueAt(drawing, i % drawing.width, i / drawing.width, c);
      pixels.push_back(c < 3 || has_alpha ? value : std::uint8_t{255});
    }
  }
  WebPPictureImportRGBA(&picture, pixels.data(), 4 * drawing.width);
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  WebPEncode(&config, &picture);
  Bytes file(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  if (!is_animation) return file;
  // A picture's own chunks become a frame. They stand behind the file's head, and behind a description if the
  // picture has alpha.
  const std::size_t begin = file[12] == 'V' && file[15] == 'X' ? 30 : 12;
  Bytes frame;
  const auto left = 2 * dice.Below(3), top = 2 * dice.Below(3);
  PutLittle(&frame, left / 2, 3);
  PutLittle(&frame, top / 2, 3);
  PutLittle(&frame, static_cast<std::uint64_t>(drawing.width - 1), 3);
  PutLittle(&frame, static_cast<std::uint64_t>(drawing.height - 1), 3);
  PutLittle(&frame, 100, 3);
  frame.push_back(static_cast<std::uint8_t>(dice.Below(4)));
  Append(&frame, file.data() + begin, file.size() - begin);
  Bytes all = {'R', 'I', 'F', 'F', 0,  0, 0, 0, 'W',  'E', 'B', 'P',
               'V', 'P', '8', 'X', 10, 0, 0, 0, 0x12, 0,   0,   0};
  PutLittle(&all, static_cast<std::uint64_t>(drawing.width - 1) + left, 3);
  PutLittle(&all, static_cast<std::uint64_t>(drawing.height - 1) + top, 3);
  Append(&all, "ANIM\6\0\0\0\0\0\0\0\0\0", 14);
  for (int i = 0; i < 2; ++i) {
    Append(&all, "ANMF", 4);
    PutLittle(&all, frame.size(), 4);
    Append(&all, frame.data(), frame.size());
  }
  Bytes size;
  PutLittle(&size, all.size() - 8, 4);
  std::copy(size.begin(), size.end(), all.begin() + 4);
  return all;
}

std::vector<PictureSeed> MakeSeeds(const PictureFormat& format, int count, int side, std::uint64_t seed) {
  Dice dice(seed);
  std::vector<PictureSeed> seeds;
  for (int i = 0; i < count; ++i) {
    const auto length = [&] { return 1 + static_cast<int>(dice.Below(static_cast<std::uint64_t>(side))); };
    const int width = length(), height = length();
    const Drawing drawing = Draw(width, height, dice.OneIn(3) ? 1 : 3, dice);
    PictureSeed made;
    made.file = format.make(drawing, dice, &made.form);
    made.form = std::string(format.name) + " " + std::to_string(width) + " x " + std::to_string(height) +
                " " + made.form;
    seeds.push_back(std::move(made));
  }
  return seeds;
}

}  // namespace rewire::test

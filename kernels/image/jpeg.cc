// SPDX-License-Identifier: Apache-2.0
// JPEG, by libjpeg-turbo with its defaults: the accurate transform, and smooth upsampling of colours.
#include <csetjmp>
#include <cstdio>
// After <cstdio>, which it needs.
#include <jpeglib.h>

#include <algorithm>
#include <cstring>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

// A picture has a few scans. A small file can have thousands, each of which goes through the whole picture.
constexpr int kMostScans = 500;

// Everything that must outlive a jump. libjpeg leaves by longjmp, so nothing here has a destructor.
struct JpegReader {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf exit;
  Canvas* canvas;
  Outcome outcome;
};

JpegReader& ReaderOf(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

[[noreturn]] void Leave(JpegReader& reader, Outcome outcome) {
  reader.outcome = outcome;
  std::longjmp(reader.exit, 1);
}

void OnError(j_common_ptr info) { Leave(ReaderOf(info), Outcome::kDamaged); }
void OnMessage(j_common_ptr /*info*/, int /*level*/) {}
void OnProgress(j_common_ptr info) {
  JpegReader& reader = ReaderOf(info);
  if (!reader.canvas->Spend(cpu::kPace / 8)) Leave(reader, Outcome::kFailed);
  if (reader.info.input_scan_number > kMostScans) Leave(reader, Outcome::kDamaged);
}

void BeginSource(j_decompress_ptr /*info*/) {}
// The whole file was given, so more is asked of a file that ends too early. libjpeg then returns without a
// result.
boolean MoreSource(j_decompress_ptr /*info*/) { return FALSE; }
void SkipSource(j_decompress_ptr info, long bytes) {
  jpeg_source_mgr& source = *info->src;
  if (bytes <= 0) return;
  const std::size_t skipped = std::min(static_cast<std::size_t>(bytes), source.bytes_in_buffer);
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}
void EndSource(j_decompress_ptr /*info*/) {}

// Both inks are stored inverted, as Adobe's programs do.
std::uint8_t WithoutInk(std::uint32_t ink, std::uint32_t black) {
  const std::uint32_t product = (255 - ink) * black + 128;
  const std::uint32_t covered = ((product >> 8) + product) >> 8;
  return static_cast<std::uint8_t>(black - covered);
}

// Four inks to red, green and blue, in place.
void InksToRgb(std::uint8_t* row, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i, row += 4) {
    for (int c = 0; c < 3; ++c) row[c] = WithoutInk(row[c], row[3]);
  }
}

void Read(JpegReader& reader) {
  jpeg_decompress_struct& info = reader.info;
  if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) Leave(reader, Outcome::kDamaged);
  switch (info.num_components) {
    case 1:
      info.out_color_space = JCS_GRAYSCALE;
      break;
    case 3:
      info.out_color_space = JCS_RGB;
      break;
    case 4:
      info.out_color_space = JCS_CMYK;
      break;
    default:
      Leave(reader, Outcome::kDamaged);
  }
  const Outcome opened = reader.canvas->Open(info.image_width, info.image_height);
  if (opened != Outcome::kDone) Leave(reader, opened);
  // Of pictures in several scans the codec keeps the coefficients.
  constexpr std::int64_t kLargestBlock = 32;
  const std::int64_t coefficients = cpu::Times(info.image_width + kLargestBlock,
                                               info.image_height + kLargestBlock, info.num_components * 2);
  if (jpeg_has_multiple_scans(&info) != FALSE && !reader.canvas->Charge(coefficients))
    Leave(reader, Outcome::kFailed);
  if (jpeg_start_decompress(&info) == FALSE) Leave(reader, Outcome::kDamaged);
  const auto width = static_cast<std::int64_t>(info.output_width);
  if (width != reader.canvas->width() || info.output_height != reader.canvas->height())
    Leave(reader, Outcome::kDamaged);
  JSAMPARRAY rows = (*info.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE,
                                              info.output_width * info.output_components, 1);
  while (info.output_scanline < info.output_height) {
    const std::int64_t y = info.output_scanline;
    if (jpeg_read_scanlines(&info, rows, 1) != 1) Leave(reader, Outcome::kDamaged);
    if (info.output_components == 4) InksToRgb(rows[0], width);
    if (!reader.canvas->Put(y, rows[0], info.output_components)) Leave(reader, Outcome::kFailed);
  }
  reader.outcome = Outcome::kDone;
}

}  // namespace

Outcome DecodeJpeg(File file, Canvas& canvas) {
  JpegReader reader;
  std::memset(&reader, 0, sizeof(reader));
  reader.canvas = &canvas;
  reader.outcome = Outcome::kDamaged;
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = OnError;
  reader.errors.emit_message = OnMessage;
  reader.info.client_data = &reader;
  // Set before the library is called, as it may fail at once. NOLINTNEXTLINE(cert-err52-cpp)
  if (setjmp(reader.exit) == 0) {
    jpeg_create_decompress(&reader.info);
    reader.progress.progress_monitor = OnProgress;
    reader.info.progress = &reader.progress;
    reader.source.init_source = BeginSource;
    reader.source.fill_input_buffer = MoreSource;
    reader.source.skip_input_data = SkipSource;
    reader.source.resync_to_restart = jpeg_resync_to_restart;
    reader.source.term_source = EndSource;
    reader.source.next_input_byte = file.data;
    reader.source.bytes_in_buffer = file.size;
    reader.info.src = &reader.source;
    Read(reader);
  }
  jpeg_destroy_decompress(&reader.info);
  return reader.outcome;
}

}  // namespace rewire::kernel::image

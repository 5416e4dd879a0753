// SPDX-License-Identifier: Apache-2.0
// JPEG, by libjpeg-turbo with its defaults: the accurate transform, and smooth upsampling of colors.
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
  jpeg_memory_mgr memory;  // the library's own functions
  std::int64_t bytes;      // that they have given out
  std::jmp_buf exit;
  Canvas* canvas;  // null if only the header is read
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

// The library gets memory through a table of functions. Those here count what it asks for before they pass it
// on, so that the sum is charged. It gives nothing back before the end.
void Count(j_common_ptr info, std::int64_t bytes) {
  JpegReader& reader = ReaderOf(info);
  reader.bytes = cpu::Plus(reader.bytes, bytes);
  if (reader.canvas != nullptr && !reader.canvas->Charge(reader.bytes)) Leave(reader, Outcome::kFailed);
}
constexpr std::int64_t kOfRow = sizeof(void*), kOfBlock = sizeof(JBLOCK);

void* TakeSmall(j_common_ptr info, int pool, std::size_t bytes) {
  Count(info, static_cast<std::int64_t>(bytes));
  return ReaderOf(info).memory.alloc_small(info, pool, bytes);
}
void* TakeLarge(j_common_ptr info, int pool, std::size_t bytes) {
  Count(info, static_cast<std::int64_t>(bytes));
  return ReaderOf(info).memory.alloc_large(info, pool, bytes);
}
JSAMPARRAY TakeSamples(j_common_ptr info, int pool, JDIMENSION columns, JDIMENSION rows) {
  Count(info, cpu::Times(cpu::Plus(columns, kOfRow), rows));
  return ReaderOf(info).memory.alloc_sarray(info, pool, columns, rows);
}
JBLOCKARRAY TakeBlocks(j_common_ptr info, int pool, JDIMENSION columns, JDIMENSION rows) {
  Count(info, cpu::Times(cpu::Plus(cpu::Times(columns, kOfBlock), kOfRow), rows));
  return ReaderOf(info).memory.alloc_barray(info, pool, columns, rows);
}
jvirt_sarray_ptr TakeAllSamples(j_common_ptr info, int pool, boolean zero, JDIMENSION columns,
                                JDIMENSION rows, JDIMENSION access) {
  Count(info, cpu::Times(cpu::Plus(columns, kOfRow), rows));
  return ReaderOf(info).memory.request_virt_sarray(info, pool, zero, columns, rows, access);
}
jvirt_barray_ptr TakeAllBlocks(j_common_ptr info, int pool, boolean zero, JDIMENSION columns, JDIMENSION rows,
                               JDIMENSION access) {
  Count(info, cpu::Times(cpu::Plus(cpu::Times(columns, kOfBlock), kOfRow), rows));
  return ReaderOf(info).memory.request_virt_barray(info, pool, zero, columns, rows, access);
}

void CountMemory(JpegReader& reader) {
  jpeg_memory_mgr& memory = *reader.info.mem;
  reader.memory = memory;
  memory.alloc_small = TakeSmall;
  memory.alloc_large = TakeLarge;
  memory.alloc_sarray = TakeSamples;
  memory.alloc_barray = TakeBlocks;
  memory.request_virt_sarray = TakeAllSamples;
  memory.request_virt_barray = TakeAllBlocks;
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

// Calls `read` with a reader of the file. It may leave by a jump.
template <typename Body>
Outcome WithReader(File file, Canvas* canvas, const Body& read) {
  JpegReader reader;
  std::memset(&reader, 0, sizeof(reader));
  reader.canvas = canvas;
  reader.outcome = Outcome::kDamaged;
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = OnError;
  reader.errors.emit_message = OnMessage;
  reader.info.client_data = &reader;
  // Set before the library is called, as it may fail at once. NOLINTNEXTLINE(cert-err52-cpp)
  if (setjmp(reader.exit) == 0) {
    jpeg_create_decompress(&reader.info);
    CountMemory(reader);
    reader.progress.progress_monitor = OnProgress;
    if (canvas != nullptr) reader.info.progress = &reader.progress;
    reader.source.init_source = BeginSource;
    reader.source.fill_input_buffer = MoreSource;
    reader.source.skip_input_data = SkipSource;
    reader.source.resync_to_restart = jpeg_resync_to_restart;
    reader.source.term_source = EndSource;
    reader.source.next_input_byte = file.data;
    reader.source.bytes_in_buffer = file.size;
    reader.info.src = &reader.source;
    read(reader);
  }
  jpeg_destroy_decompress(&reader.info);
  return reader.outcome;
}

}  // namespace

Outcome DecodeJpeg(File file, Canvas& canvas) { return WithReader(file, &canvas, Read); }

bool IsPlainJpeg(File file, std::int64_t most_width, std::int64_t most_height) {
  const Outcome outcome = WithReader(file, nullptr, [&](JpegReader& reader) {
    jpeg_decompress_struct& info = reader.info;
    const bool is_plain = jpeg_read_header(&info, TRUE) == JPEG_HEADER_OK && info.image_width <= most_width &&
                          info.image_height <= most_height && jpeg_has_multiple_scans(&info) == FALSE;
    reader.outcome = is_plain ? Outcome::kDone : Outcome::kDamaged;
  });
  return outcome == Outcome::kDone;
}

}  // namespace rewire::kernel::image

// SPDX-License-Identifier: Apache-2.0
// PNG, by libpng.
#include <png.h>

#include <cstdlib>
#include <cstring>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

constexpr png_uint_32 kMostColumns = 1'000'000;

// Everything that must outlive a jump. libpng leaves by longjmp, so nothing here has a destructor.
struct PngReader {
  png_structp png;
  png_infop info;
  File rest;
  Canvas* canvas;
  std::int64_t bytes;  // that the library has asked for
  bool is_stopped;     // the host's limits end the call
  Outcome outcome;
};

[[noreturn]] void LeavePng(PngReader& reader, Outcome outcome) {
  reader.outcome = outcome;
  png_longjmp(reader.png, 1);
}

[[noreturn]] void OnPngError(png_structp png, png_const_charp /*message*/) {
  auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  reader.outcome = reader.is_stopped ? Outcome::kFailed : Outcome::kDamaged;
  png_longjmp(png, 1);
}
// The library's memory. The sum of what it asks for is charged; what it gives back does not count.
png_voidp TakePng(png_structp png, png_alloc_size_t bytes) {
  auto& reader = *static_cast<PngReader*>(png_get_mem_ptr(png));
  reader.bytes = cpu::Plus(reader.bytes, static_cast<std::int64_t>(bytes));
  reader.is_stopped = reader.is_stopped || !reader.canvas->Charge(reader.bytes);
  return reader.is_stopped ? nullptr : std::malloc(bytes);
}
void FreePng(png_structp /*png*/, png_voidp memory) { std::free(memory); }
void OnPngWarning(png_structp /*png*/, png_const_charp /*message*/) {}

void ReadBytes(png_structp png, png_bytep out, std::size_t bytes) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (bytes > reader.rest.size) LeavePng(reader, Outcome::kDamaged);
  if (!reader.canvas->Spend(static_cast<std::int64_t>(bytes))) LeavePng(reader, Outcome::kFailed);
  std::memcpy(out, reader.rest.data, bytes);
  reader.rest.data += bytes;
  reader.rest.size -= bytes;
}

// Asks for 8 bits and one or three channels.
void AskForBytes(PngReader& reader) {
  png_structp png = reader.png;
  const int type = png_get_color_type(png, reader.info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, reader.info) < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
}

void ReadPng(PngReader& reader) {
  png_structp png = reader.png;
  Canvas& canvas = *reader.canvas;
  png_set_read_fn(png, &reader, ReadBytes);
  // A row is decoded without a question to the host. Texts and profiles, which may be packed as tightly as
  // one likes, are skipped.
  png_set_user_limits(png, kMostColumns, PNG_UINT_31_MAX);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, reader.info);
  const Outcome opened =
      canvas.Open(png_get_image_width(png, reader.info), png_get_image_height(png, reader.info));
  if (opened != Outcome::kDone) LeavePng(reader, opened);
  AskForBytes(reader);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  const int channels = png_get_channels(png, reader.info);
  const auto row_bytes = static_cast<std::int64_t>(png_get_rowbytes(png, reader.info));
  if ((channels != 1 && channels != 3) || row_bytes != cpu::Times(canvas.width(), channels))
    LeavePng(reader, Outcome::kDamaged);
  // Each pass of an interlaced picture adds to what those before it left.
  std::uint8_t* rows = canvas.Scratch(passes > 1 ? cpu::Times(row_bytes, canvas.height()) : row_bytes);
  if (rows == nullptr) LeavePng(reader, Outcome::kFailed);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < canvas.height(); ++y) {
      std::uint8_t* row = passes > 1 ? rows + y * row_bytes : rows;
      if (!canvas.Spend(row_bytes)) LeavePng(reader, Outcome::kFailed);
      png_read_row(png, row, nullptr);
      const bool is_last = pass + 1 == passes;
      if (is_last && !canvas.Put(y, row, channels)) LeavePng(reader, Outcome::kFailed);
    }
  }
  reader.outcome = Outcome::kDone;
}

}  // namespace

Outcome DecodePng(File file, Canvas& canvas) {
  PngReader reader{nullptr, nullptr, file, &canvas, 0, false, Outcome::kDamaged};
  reader.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reader, OnPngError, OnPngWarning, &reader,
                                        TakePng, FreePng);
  if (reader.png == nullptr) return reader.is_stopped ? Outcome::kFailed : Outcome::kDamaged;
  // NOLINTNEXTLINE(cert-err52-cpp)
  if (setjmp(png_jmpbuf(reader.png)) == 0) {
    reader.info = png_create_info_struct(reader.png);
    if (reader.info != nullptr) ReadPng(reader);
  }
  png_destroy_read_struct(&reader.png, &reader.info, nullptr);
  return reader.outcome;
}

}  // namespace rewire::kernel::image

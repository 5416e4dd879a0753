// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, by OpenJPEG. Codestream knows the sizes before OpenJPEG allocates anything for them.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/codestream.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

struct StreamSource {
  File file;
  std::size_t at = 0;
  Canvas* canvas = nullptr;
  bool stopped = false;
};

constexpr OPJ_SIZE_T kEnd = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T ReadStream(void* out, OPJ_SIZE_T bytes, void* handle) {
  auto& source = *static_cast<StreamSource*>(handle);
  if (!source.canvas->Spend(cpu::kPace)) source.stopped = true;
  if (source.stopped || source.at >= source.file.size) return kEnd;
  const OPJ_SIZE_T count = std::min(bytes, source.file.size - source.at);
  std::memcpy(out, source.file.data + source.at, count);
  source.at += count;
  return count;
}
OPJ_OFF_T SkipStream(OPJ_OFF_T bytes, void* handle) {
  auto& source = *static_cast<StreamSource*>(handle);
  const auto left = static_cast<OPJ_OFF_T>(source.file.size - source.at);
  const OPJ_OFF_T count = std::clamp<OPJ_OFF_T>(bytes, 0, left);
  source.at += static_cast<std::size_t>(count);
  return count;
}
OPJ_BOOL SeekStream(OPJ_OFF_T at, void* handle) {
  auto& source = *static_cast<StreamSource*>(handle);
  if (at < 0 || static_cast<std::size_t>(at) > source.file.size) return OPJ_FALSE;
  source.at = static_cast<std::size_t>(at);
  return OPJ_TRUE;
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

// A component of the picture as bytes.
struct Channel {
  const OPJ_INT32* data = nullptr;
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t across = 1;  // pixels of the picture for each of its own
  std::int64_t down = 1;
  std::int64_t offset = 0;  // what makes signed values positive
  int bits = 8;

  std::uint8_t At(std::int64_t x, std::int64_t y) const {
    const std::int64_t column = std::min(x / across, columns - 1), row = std::min(y / down, rows - 1);
    const std::int64_t value =
        std::clamp<std::int64_t>(data[row * columns + column] + offset, 0, (std::int64_t{1} << bits) - 1);
    return static_cast<std::uint8_t>(bits > 8 ? value >> (bits - 8) : value << (8 - bits));
  }
};

bool ReadChannel(const opj_image_comp_t& component, Channel* channel) {
  channel->data = component.data;
  channel->columns = component.w;
  channel->rows = component.h;
  channel->across = component.dx;
  channel->down = component.dy;
  channel->bits = static_cast<int>(component.prec);
  channel->offset = component.sgnd != 0 ? std::int64_t{1} << (component.prec - 1) : 0;
  return component.data != nullptr && component.w > 0 && component.h > 0 && component.dx > 0 &&
         component.dy > 0 && component.prec >= 1 && component.prec <= 31;
}

// Brightness and two differences of colour to red, green and blue, in place, as JFIF says.
void ToRgb(std::uint8_t* pixel) {
  constexpr int kHalf = 1 << 15;
  const int y = pixel[0] << 16, blue = pixel[1] - 128, red = pixel[2] - 128;
  const int rgb[] = {y + 91881 * red, y - 22554 * blue - 46802 * red, y + 116130 * blue};
  for (int c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(std::clamp((rgb[c] + kHalf) >> 16, 0, 255));
}

Outcome PutPicture(const opj_image_t& image, Canvas& canvas) {
  // Gray or colours, and perhaps alpha.
  const int count = image.numcomps >= 3 ? 3 : 1;
  if (image.x1 - image.x0 != canvas.width() || image.y1 - image.y0 != canvas.height())
    return Outcome::kDamaged;
  Channel channels[3];
  for (int c = 0; c < count; ++c) {
    if (!ReadChannel(image.comps[c], &channels[c])) return Outcome::kDamaged;
  }
  const bool has_differences = count == 3 && image.color_space == OPJ_CLRSPC_SYCC;
  std::uint8_t* row = canvas.Scratch(cpu::Times(count, canvas.width()));
  if (row == nullptr) return Outcome::kFailed;
  for (std::int64_t y = 0; y < canvas.height(); ++y) {
    const bool filled = canvas.For(canvas.width(), 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t x = begin; x < end; ++x) {
        for (int c = 0; c < count; ++c) row[x * count + c] = channels[c].At(x, y);
        if (has_differences) ToRgb(row + x * count);
      }
    });
    if (!filled || !canvas.Put(y, row, count)) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

}  // namespace

Outcome DecodeJpeg2000(File file, Canvas& canvas) {
  CodestreamSize size;
  if (!MeasureCodestream(file, &size)) return Outcome::kDamaged;
  if (const Outcome opened = canvas.Open(size.width, size.height); opened != Outcome::kDone) return opened;
  if (!canvas.Charge(size.most_bytes)) return Outcome::kFailed;
  constexpr OPJ_SIZE_T kPart = 4096;
  StreamSource source{file, 0, &canvas};
  const Stream stream(opj_stream_create(kPart, OPJ_TRUE));
  const Codec codec(opj_create_decompress(size.has_boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K));
  if (stream == nullptr || codec == nullptr) return Outcome::kDamaged;
  opj_stream_set_read_function(stream.get(), ReadStream);
  opj_stream_set_skip_function(stream.get(), SkipStream);
  opj_stream_set_seek_function(stream.get(), SeekStream);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* made = nullptr;
  const bool begun = opj_setup_decoder(codec.get(), &parameters) != OPJ_FALSE &&
                     opj_read_header(stream.get(), codec.get(), &made) != OPJ_FALSE;
  const Image image(made);
  const bool decoded = begun && image->x1 - image->x0 == canvas.width() &&
                       image->y1 - image->y0 == canvas.height() && image->numcomps == size.components &&
                       opj_decode(codec.get(), stream.get(), image.get()) != OPJ_FALSE;
  if (source.stopped) return Outcome::kFailed;
  return decoded ? PutPicture(*image, canvas) : Outcome::kDamaged;
}

}  // namespace rewire::kernel::image

// SPDX-License-Identifier: Apache-2.0
// WebP, by libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/image/decoders.h"

namespace rewire::kernel::image {
namespace {

// How much of the file is decoded between two questions to the host.
constexpr std::size_t kPart = 4096;

struct DeleteDecoder {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

Outcome PutRows(const std::uint8_t* rows, int of_pixel, Canvas& canvas) {
  for (std::int64_t y = 0; y < canvas.height(); ++y) {
    if (!canvas.Put(y, rows + y * canvas.width() * of_pixel, of_pixel)) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

Outcome DecodeStill(File file, Canvas& canvas) {
  const bool is_gray = canvas.pixels() == Pixels::kGray;
  const std::int64_t stride = 3 * canvas.width();
  const std::int64_t size = cpu::Times(stride, canvas.height());
  std::uint8_t* rows = is_gray ? canvas.Scratch(size) : canvas.Row(0);
  if (rows == nullptr) return Outcome::kFailed;
  const std::unique_ptr<WebPIDecoder, DeleteDecoder> decoder(
      WebPINewRGB(canvas.pixels() == Pixels::kBgr ? MODE_BGR : MODE_RGB, rows, static_cast<std::size_t>(size),
                  static_cast<int>(stride)));
  if (decoder == nullptr) return Outcome::kDamaged;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (std::size_t given = 0; status == VP8_STATUS_SUSPENDED && given < file.size;) {
    if (!canvas.Spend(cpu::kPace)) return Outcome::kFailed;
    given = std::min(given + kPart, file.size);
    status = WebPIUpdate(decoder.get(), file.data, given);
  }
  if (status != VP8_STATUS_OK) return Outcome::kDamaged;
  return is_gray ? PutRows(rows, 3, canvas) : Outcome::kDone;
}

Outcome DecodeFirstOfMany(File file, Canvas& canvas) {
  const WebPData data{file.data, file.size};
  const std::unique_ptr<WebPAnimDecoder, DeleteDecoder> decoder(WebPAnimDecoderNew(&data, nullptr));
  std::uint8_t* rows = nullptr;
  int time = 0;
  WebPAnimInfo info;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0) return Outcome::kDamaged;
  if (info.canvas_width != canvas.width() || info.canvas_height != canvas.height()) return Outcome::kDamaged;
  if (!canvas.Spend(cpu::kPace)) return Outcome::kFailed;
  if (WebPAnimDecoderGetNext(decoder.get(), &rows, &time) == 0) return Outcome::kDamaged;
  return PutRows(rows, 4, canvas);
}

}  // namespace

Outcome DecodeWebp(File file, Canvas& canvas) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.data, file.size, &features) != VP8_STATUS_OK) return Outcome::kDamaged;
  if (const Outcome opened = canvas.Open(features.width, features.height); opened != Outcome::kDone)
    return opened;
  // What the codec keeps of each pixel at most; of animations it has two whole pictures besides.
  const int of_pixel = features.has_animation != 0 ? 20 : 8;
  if (!canvas.Charge(cpu::Times(of_pixel, canvas.width(), canvas.height()))) return Outcome::kFailed;
  return features.has_animation != 0 ? DecodeFirstOfMany(file, canvas) : DecodeStill(file, canvas);
}

}  // namespace rewire::kernel::image

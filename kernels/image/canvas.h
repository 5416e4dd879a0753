// SPDX-License-Identifier: Apache-2.0
//
// Canvas: the tensor that a decoder fills, u8 [height, width, channels]. A decoder opens it as soon as it
// knows the size, before it allocates anything else. So a picture that is too large for the host's limits
// costs nothing but its header. Then the decoder puts the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::image {

// The encoded picture.
struct File {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

enum class Pixels { kRgb, kBgr, kGray };

// The outcome of a decoder's work. kDamaged: the file is none of this format, or broken. kFailed: the run
// ends, for want of memory or because the host wants it; Canvas::status says why.
enum class Outcome { kDone, kDamaged, kFailed };

class Canvas {
 public:
  Canvas(Pixels pixels, RewireFFIAny* result) : pixels_(pixels), result_(result) {}
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  // Makes the tensor. Both sizes must be above 0; kDamaged if not, or if they are above 2^31 - 1.
  Outcome Open(std::int64_t width, std::int64_t height);
  // Drops the tensor, if there is one, for one without rows and columns.
  Status Clear();

  // The width of an open canvas.
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  Pixels pixels() const { return pixels_; }
  std::int64_t channels() const { return pixels_ == Pixels::kGray ? 1 : 3; }
  std::uint8_t* Row(std::int64_t y) const;

  // Converts and writes row `y`. `row` has `of_pixel` bytes a pixel: 1 is gray, 3 or 4 are red, green, blue
  // and what does not count. False if the host wants the run to end.
  [[nodiscard]] bool Put(std::int64_t y, const std::uint8_t* row, int of_pixel) {
    return PutPart(0, y, width_, row, of_pixel);
  }
  // The same for `count` pixels from column `x` on.
  [[nodiscard]] bool PutPart(std::int64_t x, std::int64_t y, std::int64_t count, const std::uint8_t* row,
                             int of_pixel);
  // Reports work, in simple operations. False if the host wants the run to end.
  [[nodiscard]] bool Spend(std::int64_t work);
  // Pace::For and Pace::Fill; false if the host wants the run to end.
  template <typename Body>
  [[nodiscard]] bool For(std::int64_t count, std::int64_t work, const Body& body) {
    const bool done = pace_.For(count, work, body);
    if (!done) status_ = cpu::Stopped();
    return done;
  }
  [[nodiscard]] bool Blank(std::uint8_t* bytes, std::int64_t count);
  // Scratch memory of so many bytes, within the host's limit; null if there is none.
  std::uint8_t* Scratch(std::int64_t bytes);
  // Counts what a codec may hold by itself against the host's limit, as scratch memory which is never
  // touched. `bytes` is the sum; what earlier calls have counted is part of it. False if there is not so
  // much.
  [[nodiscard]] bool Charge(std::int64_t bytes);

  // Why an outcome is kFailed.
  Status TakeStatus() { return std::move(status_); }

 private:
  void Drop();

  Pixels pixels_;
  RewireFFIAny* result_;
  std::uint8_t* data_ = nullptr;
  std::int64_t width_ = 0;
  std::int64_t height_ = 0;
  std::int64_t charged_ = 0;
  cpu::Pace pace_;
  Status status_;
};

// Red, green and blue as brightness, by ITU-R 601-2 in 16 bits.
constexpr std::uint8_t GrayOf(std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

}  // namespace rewire::kernel::image

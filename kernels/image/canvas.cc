// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/canvas.h"

#include <algorithm>
#include <limits>

#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::image {
namespace {

constexpr DLDevice kHost = {kDLCPU, 0};

}  // namespace

Outcome Canvas::Open(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (data_ != nullptr || width <= 0 || height <= 0 || width > kMost || height > kMost)
    return Outcome::kDamaged;
  const std::int64_t dims[] = {height, width, channels()};
  if (__rewire_kernel_api->new_tensor(DTypeOf<std::uint8_t>(), 3, dims, kHost, result_) != 0) {
    status_ = Status::AlreadySet();
    return Outcome::kFailed;
  }
  width_ = width;
  height_ = height;
  data_ = TensorView(RewireTensorOf(result_)).data<std::uint8_t>();
  return Outcome::kDone;
}

// The VM takes no tensor of a kernel that fails or returns another.
void Canvas::Drop() {
  if (data_ == nullptr) return;
  __atomic_fetch_sub(&result_->v_obj->combined_ref_count, 1, __ATOMIC_RELEASE);
  *result_ = RewireFFIAny{};
  data_ = nullptr;
}

Status Canvas::Clear() {
  Drop();
  if (!status_.ok()) return TakeStatus();
  const std::int64_t dims[] = {0, 0, channels()};
  if (__rewire_kernel_api->new_tensor(DTypeOf<std::uint8_t>(), 3, dims, kHost, result_) != 0)
    return Status::AlreadySet();
  return Status();
}

std::uint8_t* Canvas::Row(std::int64_t y) const { return data_ + y * width_ * channels(); }

bool Canvas::Spend(std::int64_t work) {
  if (pace_.Spend(work)) return true;
  status_ = cpu::Stopped();
  return false;
}

bool Canvas::Blank(std::uint8_t* bytes, std::int64_t count) {
  if (pace_.Fill(bytes, count, std::uint8_t{0})) return true;
  status_ = cpu::Stopped();
  return false;
}

std::uint8_t* Canvas::Scratch(std::int64_t bytes) {
  std::uint8_t* memory = nullptr;
  Status made = cpu::Workspace(bytes, &memory);
  if (made.ok()) return memory;
  status_ = std::move(made);
  return nullptr;
}

bool Canvas::Charge(std::int64_t bytes) {
  // Few calls, however often a codec asks.
  constexpr std::int64_t kStep = std::int64_t{1} << 16;
  if (bytes <= charged_) return true;
  const std::int64_t more = std::max(bytes - charged_, std::min(charged_ / 8 + kStep, 8 * kStep));
  if (Scratch(more) == nullptr) return false;
  charged_ += more;
  return true;
}

bool Canvas::PutPart(std::int64_t x, std::int64_t y, std::int64_t count, const std::uint8_t* row,
                     int of_pixel) {
  std::uint8_t* out = Row(y) + x * channels();
  const bool is_gray = of_pixel == 1;
  const int red = 0, green = is_gray ? 0 : 1, blue = is_gray ? 0 : 2;
  const Pixels pixels = pixels_;
  return For(count, 2, [=](std::int64_t begin, std::int64_t end) {
    const std::uint8_t* from = row + begin * of_pixel;
    switch (pixels) {
      case Pixels::kGray:
        for (std::int64_t i = begin; i < end; ++i, from += of_pixel)
          out[i] = is_gray ? from[0] : GrayOf(from[red], from[green], from[blue]);
        return;
      case Pixels::kRgb:
      case Pixels::kBgr: {
        const int first = pixels == Pixels::kRgb ? red : blue;
        const int last = pixels == Pixels::kRgb ? blue : red;
        for (std::int64_t i = begin; i < end; ++i, from += of_pixel) {
          out[3 * i] = from[first];
          out[3 * i + 1] = from[green];
          out[3 * i + 2] = from[last];
        }
        return;
      }
    }
  });
}

}  // namespace rewire::kernel::image

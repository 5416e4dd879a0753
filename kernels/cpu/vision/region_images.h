// SPDX-License-Identifier: Apache-2.0
//
// Images from which regions are taken: their numbers, and copies in which the channels of a pixel lie side by
// side. What is taken from the same pixels of all channels then goes in vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "rewire/kernels/cpu/movement/transposed_block.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// Batch numbers of regions, each one an image of x.
template <typename I>
Status CheckImages(const char* name, const I* number, std::int64_t count, std::int64_t step,
                   std::int64_t images) {
  Pace pace;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!pace.Spend(1)) return Stopped();
    const auto image = static_cast<double>(number[i * step]);
    if (image >= 0 && image < static_cast<double>(images)) continue;
    return ValueError("region ", i, " of ", name, " is of image ", image, ", x has ", images);
  }
  return Status();
}

// So many channels of an image are turned at a time, whole vectors of them.
inline constexpr std::int64_t kMostTurnedBytes = 4194304;
inline constexpr std::int64_t kFewestTurnedChannels = 8;
constexpr std::int64_t TurnedChannels(std::int64_t channels, std::int64_t plane_bytes) {
  const std::int64_t fitting = kMostTurnedBytes / std::max<std::int64_t>(1, plane_bytes);
  return std::min(channels, fitting / kFewestTurnedChannels * kFewestTurnedChannels);
}

// Whether images [N, C, H, W] should be turned where `moves` elements could be moved in the time that turning
// saves for each channel.
template <typename T>
bool AreWorthTurning(TensorView x, std::int64_t moves) {
  if (x.size() == 0 || x.dim(1) < kFewestTurnedChannels || x.size() / x.dim(1) > moves) return false;
  return TurnedChannels(x.dim(1), Times(x.dim(2), x.dim(3), sizeof(T))) > 0;
}

inline void DeclareTurned(WorkspaceSizes& sizes, const DLTensor* x) {
  const std::int64_t plane = Times(x->shape[2], x->shape[3], x->dtype.bits / 8);
  sizes.Take(Times(TurnedChannels(x->shape[1], plane), plane), 1);
}

// Writes channels [first, first + count) of an image of x [N, C, H, W] as [H, W, count].
template <typename T>
Status TurnChannelsLast(TensorView x, std::int64_t image, std::int64_t first, std::int64_t count, T* turned) {
  using Moved = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(Moved) == sizeof(T));
  constexpr std::int64_t kPixels = 64;
  const std::int64_t plane = Times(x.dim(2), x.dim(3));
  const auto transpose = std::get<TransposeBlock<Moved>>(BestBlockTransposes());
  const auto* from = reinterpret_cast<const Moved*>(x.data<T>() + (image * x.dim(1) + first) * plane);
  auto* to = reinterpret_cast<Moved*>(turned);
  return ParallelFor((plane + kPixels - 1) / kPixels, GrainOf(kGrain, kPixels, count),
                     [=](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (; begin < end && pace.Spend(kPixels * count); ++begin) {
                         const std::int64_t pixel = begin * kPixels;
                         transpose(to + pixel * count, count, from + pixel, plane,
                                   std::min(kPixels, plane - pixel), count, false);
                       }
                     });
}

// Calls pool(region, turned channels, first of them, how many, pace) for each of `count` regions and all
// channels of its image, image by image. `image_of(region)` is the image's number, and `work` that of a
// channel of a region.
template <typename T, typename ImageOf, typename PoolChannels>
Status ForTurnedChannels(TensorView x, std::int64_t count, std::int64_t work, const ImageOf& image_of,
                         const PoolChannels& pool) {
  const std::int64_t channels = x.dim(1), plane = Times(x.dim(2), x.dim(3));
  const std::int64_t at_once = TurnedChannels(channels, Times(plane, sizeof(T)));
  T* turned = nullptr;
  if (Status s = Workspace(Times(at_once, plane), &turned); !s.ok()) return s;
  Pace asked;
  for (std::int64_t image = 0; image < x.dim(0); ++image) {
    bool is_used = false;
    for (std::int64_t r = 0; r < count && !is_used && asked.Spend(1); ++r) is_used = image_of(r) == image;
    if (!asked.Spend(1)) return Stopped();
    for (std::int64_t first = 0; is_used && first < channels; first += at_once) {
      const std::int64_t some = std::min(at_once, channels - first);
      if (Status s = TurnChannelsLast(x, image, first, some, turned); !s.ok()) return s;
      const auto run = [&](std::int64_t r, std::int64_t end, Pace& pace) {
        for (; r < end && pace.Spend(1); ++r) {
          if (image_of(r) == image) pool(r, turned, first, some, pace);
        }
      };
      if (Status s = ParallelFor(count, GrainOf(kGrain, work, some), run); !s.ok()) return s;
    }
  }
  return Status();
}

}  // namespace rewire::kernel::cpu

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

// Larger images are read as they lie.
inline constexpr std::int64_t kMostTurnedBytes = 4194304;
inline constexpr std::int64_t kFewestTurnedChannels = 8;

// Whether images [N, C, H, W] should be turned where `moves` elements could be moved in the time that turning
// saves for each channel.
template <typename T>
bool AreWorthTurning(TensorView x, std::int64_t moves) {
  return x.size() > 0 && x.dim(1) >= kFewestTurnedChannels &&
         Times(x.size(), sizeof(T)) <= kMostTurnedBytes && x.size() / x.dim(1) <= moves;
}

inline void DeclareTurned(WorkspaceSizes& sizes, const DLTensor* x) {
  const std::int64_t bytes = Times(SizeOf(x), x->dtype.bits / 8);
  sizes.Take(bytes <= kMostTurnedBytes ? bytes : 0, 1);
}

// Images [N, C, H, W] as [N, H, W, C] in the workspace.
template <typename T>
Status TurnChannelsLast(TensorView x, T** turned) {
  using Moved = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(Moved) == sizeof(T));
  constexpr std::int64_t kPixels = 64;
  if (Status s = Workspace(x.size(), turned); !s.ok()) return s;
  const std::int64_t channels = x.dim(1), plane = Times(x.dim(2), x.dim(3));
  const std::int64_t parts = (plane + kPixels - 1) / kPixels;
  const auto transpose = std::get<TransposeBlock<Moved>>(BestBlockTransposes());
  const auto* from = reinterpret_cast<const Moved*>(x.data<T>());
  auto* to = reinterpret_cast<Moved*>(*turned);
  return ParallelFor(Times(x.dim(0), parts), GrainOf(kGrain, kPixels, channels),
                     [=](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (; begin < end && pace.Spend(kPixels * channels); ++begin) {
                         const std::int64_t image = begin / parts * plane * channels;
                         const std::int64_t pixel = begin % parts * kPixels;
                         transpose(to + image + pixel * channels, channels, from + image + pixel, plane,
                                   std::min(kPixels, plane - pixel), channels, false);
                       }
                     });
}

}  // namespace rewire::kernel::cpu

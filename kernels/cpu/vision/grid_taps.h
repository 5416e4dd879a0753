// SPDX-License-Identifier: Apache-2.0
//
// The elements that points of a grid read of an image, and their weights. They are found for many points at
// once, in loops that become vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

class GridTaps {
 public:
  enum Mode { kLinear, kNearest, kCubic };
  enum Padding { kZeros, kBorder, kReflection };
  Mode mode = kLinear;
  Padding padding = kZeros;
  bool align_corners = false;

  // Points whose taps are found at once.
  static constexpr std::int64_t kPoints = 64;
  // Taps that are found before all channels use them. A channel is read once for each such block of points.
  static constexpr std::int64_t kBlockTaps = 2048;
  static constexpr int kMostReach = 4;  // of cubic sampling

  // The elements that points of the grid read along one axis, and their weights. The index of an element
  // beyond the image, which counts as 0, is -1.
  struct AxisTaps {
    std::int32_t indices[kMostReach][kPoints];
    double weights[kMostReach][kPoints];
  };
  // The same of all axes: offsets in a plane. Tap k of point p has place k * points + p.
  template <typename T, typename Offset>
  struct Taps {
    int count = 0;            // of each point
    std::int64_t points = 0;  // of a block
    Offset offsets[kBlockTaps];
    T weights[kBlockTaps];
  };

  // The taps of a point.
  int CountTaps(int axes) const {
    int count = 1;
    for (int a = 0; a < axes; ++a) count *= ReachOf(mode);
    return count;
  }

  // The taps along an axis of `count` points, whose coordinates in [-1, 1] are `step` apart.
  template <typename T>
  void FindAxisTaps(const T* coordinates, std::int64_t step, std::int64_t dim, std::int64_t count,
                    AxisTaps* taps) const {
    const auto size = static_cast<double>(dim);
    double positions[kPoints];
    if (align_corners) {
      for (std::int64_t p = 0; p < count; ++p)
        positions[p] = (static_cast<double>(coordinates[p * step]) + 1) / 2 * (size - 1);
    } else {
      for (std::int64_t p = 0; p < count; ++p)
        positions[p] = ((static_cast<double>(coordinates[p * step]) + 1) * size - 1) / 2;
    }
    const double low = align_corners ? 0 : -0.5, span = align_corners ? size - 1 : size;
    switch (padding) {
      case kZeros:
        return FindTapsByMode(Fold<kZeros>{size, low, span}, dim, positions, count, taps);
      case kBorder:
        return FindTapsByMode(Fold<kBorder>{size, low, span}, dim, positions, count, taps);
      case kReflection:
        return FindTapsByMode(Fold<kReflection>{size, low, span}, dim, positions, count, taps);
    }
  }
  // The neighbors along every axis, weighted by their distance, of `count` points of the block from `first`
  // on.
  template <int kAxes, typename T, typename Offset>
  void Combine(ShapeView x, const AxisTaps (&axes)[kAxes], std::int64_t first, std::int64_t count,
               Taps<T, Offset>* taps) const {
    const int reach = ReachOf(mode);
    const bool is_empty = Product(x, 2, 2 + kAxes) == 0;
    for (int tap = 0; tap < taps->count; ++tap) {
      const std::int32_t* indices[kAxes];
      const double* weights[kAxes];
      for (int a = kAxes - 1, rest = tap; a >= 0; --a, rest /= reach) {
        indices[a] = axes[a].indices[rest % reach];
        weights[a] = axes[a].weights[rest % reach];
      }
      // All taps lie beyond an image without elements.
      Offset dims[kAxes];
      for (int a = 0; a < kAxes; ++a)
        dims[a] = is_empty ? Offset{0} : static_cast<Offset>(x[static_cast<std::size_t>(2 + a)]);
      const std::int64_t place = tap * taps->points + first;
      WideLoop([=, offsets = taps->offsets + place, products = taps->weights + place] {
        for (std::int64_t p = 0; p < count; ++p) {
          Offset offset = indices[0][p];
          double weight = weights[0][p];
          bool is_beyond = offset < 0;
          for (int a = 1; a < kAxes; ++a) {
            offset = offset * dims[a] + indices[a][p];
            weight *= weights[a][p];
            is_beyond = is_beyond || indices[a][p] < 0;
          }
          offsets[p] = is_beyond ? -1 : offset;
          products[p] = static_cast<T>(weight);
        }
      });
    }
  }

 private:
  // Brings positions back to an axis of this size where the padding says so.
  template <Padding kPadding>
  struct Fold {
    double size, low, span;

    double operator()(double position) const {
      if constexpr (kPadding == kZeros) return position;
      const double most = size > 1 ? size - 1 : 0;
      const auto held = [most](double x) {
        const double least = x > 0 ? x : 0;  // for NaN, too
        return least < most ? least : most;
      };
      if constexpr (kPadding == kBorder) return held(position);
      const double distance = std::fabs(position - low);
      const double rest = distance - 2 * span * std::floor(distance / (2 * span));
      const double folded = held((rest > span ? 2 * span - rest : rest) + low);
      return span > 0 && distance <= std::numeric_limits<double>::max() ? folded : 0;
    }
  };

  template <Padding kPadding>
  void FindTapsByMode(Fold<kPadding> fold, std::int64_t dim, const double* positions, std::int64_t count,
                      AxisTaps* taps) const {
    switch (mode) {
      case kLinear:
        return FindTaps<kLinear>(fold, dim, positions, count, taps);
      case kNearest:
        return FindTaps<kNearest>(fold, dim, positions, count, taps);
      case kCubic:
        return FindTaps<kCubic>(fold, dim, positions, count, taps);
    }
  }

  static constexpr int ReachOf(Mode mode) { return mode == kCubic ? 4 : mode == kLinear ? 2 : 1; }

  template <Mode kMode, Padding kPadding>
  static void FindTaps(Fold<kPadding> fold, std::int64_t dim, const double* positions, std::int64_t count,
                       AxisTaps* taps) {
    const auto size = static_cast<std::int32_t>(std::min(dim, kFarthest));
    if constexpr (kMode == kCubic)
      FindCubicTaps(fold, size, positions, count, taps);
    else
      FindNearTaps<kMode>(fold, size, positions, count, taps);
  }

  // Positions that have been brought back lie in the image, and so do their neighbors but the one behind the
  // last element, whose weight is 0.
  template <Mode kMode, Padding kPadding>
  static void FindNearTaps(Fold<kPadding> fold, std::int32_t size, const double* positions,
                           std::int64_t count, AxisTaps* taps) {
    WideLoop([=] {
      for (std::int64_t p = 0; p < count; ++p) {
        const double position = fold(positions[p]);
        const double down = kMode == kNearest ? std::nearbyint(position) : std::floor(position);
        const std::int32_t first = ToIndex(down), second = first + 1;
        if constexpr (kPadding == kZeros) {
          taps->indices[0][p] = first >= 0 && first < size ? first : -1;
          if (kMode == kLinear) taps->indices[1][p] = second >= 0 && second < size ? second : -1;
        } else {
          taps->indices[0][p] = first < size ? first : size - 1;
          if (kMode == kLinear) taps->indices[1][p] = second < size ? second : size - 1;
        }
        const double distance = position - down;
        taps->weights[0][p] = kMode == kNearest ? 1 : 1 - distance;
        if (kMode == kLinear) taps->weights[1][p] = distance;
      }
    });
  }

  // Cubic taps are brought back one by one.
  template <Padding kPadding>
  static void FindCubicTaps(Fold<kPadding> fold, std::int32_t size, const double* positions,
                            std::int64_t count, AxisTaps* taps) {
    WideLoop([=] {
      for (int k = 0; k < kMostReach; ++k) {
        for (std::int64_t p = 0; p < count; ++p) {
          const double down = std::floor(positions[p]);
          taps->weights[k][p] = Cubic(std::fabs(positions[p] - down - static_cast<double>(k - 1)));
          const std::int32_t at = ToIndex(down) + (k - 1);
          const bool is_inside = at >= 0 && at < size;
          const std::int32_t beyond =
              kPadding == kZeros || size == 0 ? -1 : ToIndex(fold(static_cast<double>(at)));
          taps->indices[k][p] = is_inside ? at : beyond;
        }
      }
    });
  }

  static constexpr std::int64_t kFarthest = 1000000000;
  // Far outside for what is no index: NaN and infinity too.
  static std::int32_t ToIndex(double position) {
    constexpr auto kMost = static_cast<double>(kFarthest);
    return ToTypeInRange<std::int32_t>(position > -kMost && position < kMost ? position : -kMost);
  }
  static double Cubic(double x) {
    constexpr double kA = -0.75;
    const double near = ((kA + 2) * x - (kA + 3)) * x * x + 1;
    const double far = ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
    return x <= 1 ? near : x < 2 ? far : 0;
  }
};

}  // namespace rewire::kernel::cpu

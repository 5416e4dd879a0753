// SPDX-License-Identifier: Apache-2.0
// The largest pixels of regions of images.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/vision/region_images.h"

namespace rewire::kernel::cpu {

struct MaxRoiPool {
  static constexpr const char* kName = names::kMaxRoiPool;
  double scale = 1;
  static Status Make(Attributes& attributes, MaxRoiPool* pool) {
    pool->scale = attributes.Float("spatial_scale", 1);
    return Status();
  }
  // rois [count, 5]: image, x0, y0, x1, y1; out [count, C, height, width].
  Status operator()(TensorView x, TensorView rois, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("rois", rois).Dense("out", out).Rank("out", out, 4);
    checks.SameDType("rois", rois, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "rois", rois).Take(); !s.ok())
      return s;
    Dims expected;
    Status fits =
        contract::RegionSizes(x.dims(), rois.dims(), out.dim(2), out.dim(3), &expected, kShapeError);
    if (!fits.ok()) return fits;
    const std::int64_t of_rois[] = {rois.dim(0), 5};
    checks.Shape("rois", rois, ShapeView(of_rois, 2)).Shape("out", out, expected.view());
    if (Status s = checks.Take(); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      const T* regions = rois.data<T>();
      if (Status s = CheckImages("rois", regions, rois.dim(0), 5, x.dim(0)); !s.ok()) return s;
      Pace pace;
      for (std::int64_t i = 0; i < 5 * rois.dim(0); ++i) {
        if (!pace.Spend(1)) return Stopped();
        if (!(std::fabs(regions[i]) < T{1e6})) return ValueError("region ", i / 5, " of rois is no region");
      }
      const std::int64_t plane = Times(x.dim(2), x.dim(3)), outputs = Times(out.dim(2), out.dim(3));
      const std::int64_t channels = x.dim(1);
      if (AreWorthTurning<T>(x, Times(16, rois.dim(0), Plus(outputs, 1)))) return PoolTurned<T>(x, rois, out);
      Bins *of_rows = nullptr, *of_columns = nullptr;
      if (Status s = Workspace(std::max<std::int64_t>(1, out.dim(2)), &of_rows); !s.ok()) return s;
      if (Status s = Workspace(std::max<std::int64_t>(1, out.dim(3)), &of_columns); !s.ok()) return s;
      for (std::int64_t r = 0; r < rois.dim(0) && outputs > 0; ++r) {
        const T* roi = regions + r * 5;
        const T* image = x.data<T>() + ToType<std::int64_t>(roi[0]) * channels * plane;
        T* to = out.data<T>() + r * channels * outputs;
        const Bins rows = Split(AxisOf(roi[2], roi[4], x.dim(2), out.dim(2)), of_rows, pace);
        const Bins columns = Split(AxisOf(roi[1], roi[3], x.dim(3), out.dim(3)), of_columns, pace);
        if (pace.stopped()) return Stopped();
        const std::int64_t area = Times(rows.size(), columns.size());
        Status s = ParallelFor(channels, GrainOf(kGrain, area / 4 + outputs * 8),
                               [&](std::int64_t begin, std::int64_t end, Pace& of_thread) {
                                 for (; begin < end && !of_thread.stopped(); ++begin) {
                                   Pool(image + begin * plane, x.dim(3), of_rows, out.dim(2), of_columns,
                                        out.dim(3), columns, to + begin * outputs, of_thread);
                                 }
                               });
        if (!s.ok()) return s;
      }
      return pace.status();
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* out = sizes.Tensor(-1, 4);
    if (out == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, out->shape[2]), sizeof(Bins));
    sizes.Take(std::max<std::int64_t>(1, out->shape[3]), sizeof(Bins));
    const DLTensor* x = sizes.Tensor(0, 4);
    if (x == nullptr) return false;
    DeclareTurned(sizes, x);
    return true;
  }

 private:
  // The pixels of one bin along an axis, or of all: [begin, end).
  struct Bins {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
  };

  // A region along an axis of an image, in bins.
  struct Axis {
    std::int64_t start, extent, size, count;
    Bins At(std::int64_t i) const {
      const std::int64_t behind = (Times(i + 1, extent) + count - 1) / count;
      return {std::clamp<std::int64_t>(start + Times(i, extent) / count, 0, size),
              std::clamp<std::int64_t>(start + behind, 0, size)};
    }
  };
  template <typename T>
  Axis AxisOf(T first, T last, std::int64_t size, std::int64_t count) const {
    // Far outside of any image, and products with sizes of images and of out do not overflow.
    constexpr double kFar = 0x1p40;
    const auto pixel = [&](T given) {
      const double at = std::round(static_cast<double>(given) * scale);
      return ToType<std::int64_t>(at != at ? 0 : std::clamp(at, -kFar, kFar));
    };
    const std::int64_t start = pixel(first);
    return {start, std::max<std::int64_t>(1, pixel(last) - start + 1), size, count};
  }

  // Finds the pixels of each bin, and of all.
  static Bins Split(const Axis& axis, Bins* bins, Pace& pace) {
    static_cast<void>(pace.For(axis.count, 16, [=](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) bins[i] = axis.At(i);
    }));
    return {bins[0].begin, bins[axis.count - 1].end};
  }

  template <typename T>
  Status PoolTurned(TensorView x, TensorView rois, TensorView out) const {
    const T* regions = rois.data<T>();
    const std::int64_t channels = x.dim(1), outputs = Times(out.dim(2), out.dim(3));
    return ForTurnedChannels<T>(
        x, rois.dim(0), Times(4, outputs),
        [=](std::int64_t r) { return ToType<std::int64_t>(regions[r * 5]); },
        [&](std::int64_t r, const T* turned, std::int64_t first, std::int64_t some, Pace& pace) {
          const T* roi = regions + r * 5;
          PoolChannels(turned, some, AxisOf(roi[2], roi[4], x.dim(2), out.dim(2)),
                       AxisOf(roi[1], roi[3], x.dim(3), out.dim(3)),
                       out.data<T>() + (r * channels + first) * outputs, pace);
        });
  }

  // The largest pixel of each column first, for all bins beside each other, then of the columns of each bin.
  template <typename T>
  static void Pool(const T* in, std::int64_t step, const Bins* of_rows, std::int64_t height,
                   const Bins* of_columns, std::int64_t width, Bins columns, T* to, Pace& pace) {
    constexpr std::int64_t kColumns = 256;
    constexpr T kLeast = -std::numeric_limits<T>::infinity();
    T most[kColumns];
    for (const Bins* rows = of_rows; rows < of_rows + height; ++rows, to += width) {
      if (!pace.Spend(4 * width)) return;
      for (std::int64_t o = 0; o < width; ++o)
        to[o] = rows->size() == 0 || of_columns[o].size() == 0 ? T{0} : kLeast;
      if (rows->size() == 0) continue;
      for (std::int64_t left = columns.begin; left < columns.end; left += kColumns) {
        const std::int64_t right = std::min(columns.end, left + kColumns), count = right - left;
        std::fill_n(most, count, kLeast);
        const auto scan = [&](std::int64_t begin, std::int64_t end) {
          WideLoop([line = in + (rows->begin + begin) * step + left, lines = end - begin, step, count,
                    most = &most[0]] {
            for (std::int64_t i = 0; i < lines; ++i) {
              for (std::int64_t j = 0; j < count; ++j)
                most[j] = line[i * step + j] > most[j] ? line[i * step + j] : most[j];
            }
          });
        };
        if (!pace.For(rows->size(), count / 8 + 2, scan) || !pace.Spend(Times(4, width))) return;
        for (std::int64_t o = 0; o < width; ++o) {
          const std::int64_t begin = std::max(of_columns[o].begin, left);
          const std::int64_t end = std::min(of_columns[o].end, right);
          for (std::int64_t j = begin; j < end; ++j) to[o] = most[j - left] > to[o] ? most[j - left] : to[o];
        }
      }
    }
  }

  // The largest pixels of all channels of an image that has them last.
  template <typename T>
  static void PoolChannels(const T* in, std::int64_t channels, const Axis& of_rows, const Axis& of_columns,
                           T* to, Pace& pace) {
    constexpr std::int64_t kChannels = 64;
    constexpr T kLeast = -std::numeric_limits<T>::infinity();
    T most[kChannels];
    const std::int64_t width = of_columns.count, outputs = Times(of_rows.count, width);
    const std::int64_t step = of_columns.size;
    for (std::int64_t first = 0; first < channels; first += kChannels) {
      const std::int64_t count = std::min(kChannels, channels - first);
      for (std::int64_t o = 0; o < outputs; ++o) {
        if (!pace.Spend(8 + count)) return;
        const Bins rows = of_rows.At(o / width), columns = of_columns.At(o % width);
        const bool is_empty = rows.size() == 0 || columns.size() == 0;
        std::fill_n(most, count, is_empty ? T{0} : kLeast);
        const auto scan = [&](std::int64_t begin, std::int64_t end) {
          WideLoop([=, from = in + first, largest = &most[0]] {
            for (std::int64_t y = rows.begin + begin; y < rows.begin + end; ++y) {
              for (std::int64_t x = columns.begin; x < columns.end; ++x) {
                const T* pixel = from + (y * step + x) * channels;
                for (std::int64_t c = 0; c < count; ++c)
                  largest[c] = pixel[c] > largest[c] ? pixel[c] : largest[c];
              }
            }
          });
        };
        if (!is_empty && !pace.For(rows.size(), Times(columns.size(), 2 + count / 4), scan)) return;
        for (std::int64_t c = 0; c < count; ++c) to[(first + c) * outputs + o] = most[c];
      }
    }
  }
};

}  // namespace rewire::kernel::cpu

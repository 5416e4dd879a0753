// SPDX-License-Identifier: Apache-2.0
//
// Pools regions of images to one size.
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
#include "rewire/kernels/cpu/vision/max_roi_pool.h"
#include "rewire/kernels/cpu/vision/region_images.h"

namespace rewire::kernel::cpu {
namespace {

struct RoiAlign {
  static constexpr const char* kName = names::kRoiAlign;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t samples = 0;
  double scale = 1;
  bool maximum = false;
  bool half_pixel = true;
  static Status Make(Attributes& attributes, RoiAlign* roi) {
    roi->height = attributes.Int("output_height", 1, 1);
    roi->width = attributes.Int("output_width", 1, 1);
    roi->samples = attributes.Int("sampling_ratio", 0, 0, 1 << 16);
    roi->scale = attributes.Float("spatial_scale", 1);
    roi->maximum = attributes.Choice("mode", {"avg", "max"}, 0) == 1;
    roi->half_pixel =
        attributes.Choice("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}, 0) == 0;
    return Status();
  }

  Status operator()(TensorView x, TensorView rois, TensorView images, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("rois", rois).Dense("batch_indices", images).Dense("out", out);
    checks.SameDType("rois", rois, "x", x).SameDType("out", out, "x", x);
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "rois", rois);
    if (Status s = checks.NoOverlap("out", out, "batch_indices", images).Take(); !s.ok()) return s;
    Dims expected;
    Status fits = contract::RegionSizes(x.dims(), rois.dims(), height, width, &expected, kShapeError);
    if (!fits.ok()) return fits;
    const std::int64_t count = rois.dim(0), of_rois[] = {count, 4};
    checks.Shape("rois", rois, ShapeView(of_rois, 2)).Shape("batch_indices", images, ShapeView(&count, 1));
    if (Status s = checks.Shape("out", out, expected.view()).Take(); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      return ForType(Indices(), "batch_indices", images, [&](auto index_tag) -> Status {
        using T = typename decltype(tag)::type;
        using I = typename decltype(index_tag)::type;
        const I* number = images.data<I>();
        if (Status s = CheckImages("batch_indices", number, count, 1, x.dim(0)); !s.ok()) return s;
        Pace pace;
        for (std::int64_t i = 0; i < 4 * count; ++i) {
          if (!pace.Spend(1)) return Stopped();
          if (!(std::fabs(rois.data<T>()[i]) < T{1e6}))
            return ValueError("region ", i / 4, " of rois is no region");
        }
        const std::int64_t plane = Times(x.dim(2), x.dim(3)), channels = x.dim(1);
        const std::int64_t outputs = Times(height, width);
        // As many elements could be moved in the time that a sample takes.
        constexpr double kMoves = 8;
        if (AreWorthTurning<T>(x, ToType<std::int64_t>(kMoves * SamplesOf(rois.data<T>(), count, pace)))) {
          return ForTurnedChannels<T>(
              x, count, Times(4, outputs),
              [=](std::int64_t r) { return static_cast<std::int64_t>(number[r]); },
              [&](std::int64_t r, const T* turned, std::int64_t first, std::int64_t some, Pace& of_thread) {
                PoolChannels(turned, some, Region(*this, x, rois.data<T>() + r * 4),
                             out.data<T>() + (r * channels + first) * outputs, of_thread);
              });
        }
        return ParallelFor(Times(count, channels), GrainOf(kGrain, outputs, 16),
                           [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                             // Channels of a region are next to each other and share the places of samples.
                             while (begin < end && !pace.stopped()) {
                               const std::int64_t roi = begin / channels;
                               const Region region(*this, x, rois.data<T>() + roi * 4);
                               const T* image = x.data<T>() + number[roi] * channels * plane;
                               for (std::int64_t last = std::min(end, (roi + 1) * channels);
                                    begin < last && !pace.stopped(); ++begin) {
                                 Pool(image + begin % channels * plane, region,
                                      out.data<T>() + begin * outputs, pace);
                               }
                             }
                           });
      });
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 4);
    if (x == nullptr) return false;
    DeclareTurned(sizes, x);
    return true;
  }

 private:
  // About how many samples all regions take of a channel. By default a region takes as many as it has pixels.
  template <typename T>
  double SamplesOf(const T* rois, std::int64_t count, Pace& pace) const {
    const double outputs = static_cast<double>(height) * static_cast<double>(width);
    if (samples > 0) return static_cast<double>(count) * outputs * static_cast<double>(samples * samples);
    double pixels = 0;
    for (const T* roi = rois; roi < rois + 4 * count && pace.Spend(1); roi += 4) {
      const double area = static_cast<double>((roi[2] - roi[0]) * (roi[3] - roi[1])) * scale * scale;
      pixels += std::max(outputs, area);
    }
    return pixels;
  }

  // Two neighbors along an axis, as offsets into a plane, and what part of the value is the second one's.
  struct Neighbors {
    std::int64_t first, second;
    double part;
    bool inside;
  };

  // The samples of a region along an axis. The first ones are found once for all channels.
  class Samples {
   public:
    Samples(double start, double extent, std::int64_t bins, std::int64_t given, std::int64_t size,
            std::int64_t step)
        : start_(start), bin_(extent / static_cast<double>(bins)), size_(size), step_(step) {
      per_bin_ = given > 0 ? given : std::max<std::int64_t>(0, ToType<std::int64_t>(std::ceil(bin_)));
      for (std::int64_t i = 0; i < std::min(kStored, Times(bins, per_bin_)); ++i)
        stored_[i] = Find(i / per_bin_, i % per_bin_);
    }
    std::int64_t per_bin() const { return per_bin_; }
    Neighbors At(std::int64_t bin, std::int64_t i) const {
      const std::int64_t at = Times(bin, per_bin_) + i;
      return at < kStored ? stored_[at] : Find(bin, i);
    }

   private:
    static constexpr std::int64_t kStored = 128;

    Neighbors Find(std::int64_t bin, std::int64_t i) const {
      double at = start_ + static_cast<double>(bin) * bin_ +
                  (static_cast<double>(i) + 0.5) * bin_ / static_cast<double>(per_bin_);
      if (!(at >= -1 && at <= static_cast<double>(size_)) || size_ == 0) return {0, 0, 0, false};
      at = std::clamp(at, 0.0, static_cast<double>(size_ - 1));
      const auto pixel = ToType<std::int64_t>(at);
      return {pixel * step_, std::min(size_ - 1, pixel + 1) * step_, at - static_cast<double>(pixel), true};
    }

    double start_, bin_;
    std::int64_t size_, step_, per_bin_;
    Neighbors stored_[kStored];  // as many of these as there are samples; the others are not set
  };

  struct Region {
    template <typename T>
    Region(const RoiAlign& of, TensorView x, const T* roi)
        : rows(Start(of, static_cast<double>(roi[1])),
               Extent(of, static_cast<double>(roi[1]), static_cast<double>(roi[3])), of.height, of.samples,
               x.dim(2), x.dim(3)),
          columns(Start(of, static_cast<double>(roi[0])),
                  Extent(of, static_cast<double>(roi[0]), static_cast<double>(roi[2])), of.width, of.samples,
                  x.dim(3), 1) {}

    static double Start(const RoiAlign& of, double at) { return at * of.scale - (of.half_pixel ? 0.5 : 0); }
    static double Extent(const RoiAlign& of, double from, double to) {
      const double extent = Start(of, to) - Start(of, from);
      return of.half_pixel ? extent : std::max(extent, 1.0);  // as it was before half pixels came
    }
    Samples rows, columns;
  };

  // Averages take the sum of the four weighted neighbors, maxima the largest of them, as ONNX has it.
  template <typename T>
  void Pool(const T* in, const Region& region, T* out, Pace& pace) const {
    const std::int64_t per_row = region.rows.per_bin(), per_column = region.columns.per_bin();
    const std::int64_t taken = Times(per_row, per_column);
    const auto samples_taken = static_cast<double>(std::max<std::int64_t>(1, taken));
    for (std::int64_t row = 0; row < height; ++row) {
      for (std::int64_t column = 0; column < width; ++column) {
        if (!pace.Spend(8)) return;
        double sum = 0;
        double most = -std::numeric_limits<double>::infinity();
        const auto take = [&](const Neighbors& down, const Neighbors& across) {
          double a = 0, b = 0, c = 0, d = 0;
          if (down.inside && across.inside) {
            const double above = 1 - down.part, before = 1 - across.part;
            a = above * before * static_cast<double>(in[down.first + across.first]);
            b = above * across.part * static_cast<double>(in[down.first + across.second]);
            c = down.part * before * static_cast<double>(in[down.second + across.first]);
            d = down.part * across.part * static_cast<double>(in[down.second + across.second]);
          }
          if (maximum)
            most = std::max(std::max(std::max(std::max(most, a), b), c), d);
          else
            sum += a + b + c + d;
        };
        if (taken == 1) take(region.rows.At(row, 0), region.columns.At(column, 0));
        // Rows without samples are no work, and there may be more than a run ever ends with.
        for (std::int64_t i = 0; taken > 1 && i < per_row; ++i) {
          const Neighbors down = region.rows.At(row, i);
          const auto line = [&](std::int64_t j, std::int64_t end) {
            for (; j < end; ++j) take(down, region.columns.At(column, j));
          };
          if (!pace.For(per_column, 8, line)) return;
        }
        *out++ = static_cast<T>(!maximum ? sum / samples_taken : taken == 0 ? 0 : most);
      }
    }
  }

  // The same of all channels of an image that has them last.
  template <typename T>
  void PoolChannels(const T* in, std::int64_t channels, const Region& region, T* out, Pace& pace) const {
    T values[kChannels];
    const std::int64_t per_row = region.rows.per_bin(), per_column = region.columns.per_bin();
    const std::int64_t taken = Times(per_row, per_column), outputs = Times(height, width);
    const T divisor = maximum ? T{1} : static_cast<T>(std::max<std::int64_t>(1, taken));
    const T start = maximum && taken > 0 ? -std::numeric_limits<T>::infinity() : T{0};
    for (std::int64_t first = 0; first < channels; first += kChannels) {
      const std::int64_t count = std::min(kChannels, channels - first);
      for (std::int64_t o = 0; o < outputs; ++o) {
        if (!pace.Spend(8 + count)) return;
        std::fill_n(values, count, start);
        for (std::int64_t i = 0; taken > 0 && i < per_row; ++i) {
          const Neighbors down = region.rows.At(o / width, i);
          const auto line = [&](std::int64_t j, std::int64_t end) {
            for (; j < end; ++j)
              Take(in + first, channels, down, region.columns.At(o % width, j), count, values);
          };
          if (!pace.For(per_column, 8 + count, line)) return;
        }
        WideLoop([=, value = &values[0]] {
          for (std::int64_t c = 0; c < count; ++c) value[c] /= divisor;
        });
        for (std::int64_t c = 0; c < count; ++c) out[(first + c) * outputs + o] = values[c];
      }
    }
  }
  static constexpr std::int64_t kChannels = 64;

  // Takes a sample of `count` channels into their values.
  template <typename T>
  void Take(const T* in, std::int64_t channels, const Neighbors& down, const Neighbors& across,
            std::int64_t count, T* values) const {
    const double above = 1 - down.part, before = 1 - across.part;
    const bool inside = down.inside && across.inside;
    const auto weight = [inside](double part) { return inside ? static_cast<T>(part) : T{0}; };
    const T by[] = {weight(above * before), weight(above * across.part), weight(down.part * before),
                    weight(down.part * across.part)};
    const auto at = [&](std::int64_t row, std::int64_t column) { return in + (row + column) * channels; };
    WideLoop([=, w = by[0], x = by[1], y = by[2], z = by[3], a = at(down.first, across.first),
              b = at(down.first, across.second), c = at(down.second, across.first),
              d = at(down.second, across.second), largest = maximum] {
      if (!inside) {
        for (std::int64_t i = 0; largest && i < count; ++i) values[i] = std::max(values[i], T{0});
      } else if (largest) {
        for (std::int64_t i = 0; i < count; ++i) {
          const T upper = std::max(std::max(values[i], w * a[i]), x * b[i]);
          values[i] = std::max(std::max(upper, y * c[i]), z * d[i]);
        }
      } else {
        for (std::int64_t i = 0; i < count; ++i) values[i] += w * a[i] + x * b[i] + y * c[i] + z * d[i];
      }
    });
  }
};

struct RoiAlignShape {
  static constexpr const char* kName = names::kShapeRoiAlign;
  std::int64_t height = 1;
  std::int64_t width = 1;
  static Status Make(Attributes& attributes, RoiAlignShape* roi) {
    roi->height = attributes.Int("output_height", 1, 1);
    roi->width = attributes.Int("output_width", 1, 1);
    return Status();
  }
  Status operator()(TensorView x, TensorView rois, TensorView out) const {
    Dims input, regions, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("rois", rois, &regions); !s.ok()) return s;
    Status s = contract::RegionSizes(input.view(), regions.view(), height, width, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

}  // namespace

std::span<const Kernel> RoiKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<RoiAlign>(
          "x, rois, batch_indices -> out", "x, rois, out f32 f64; batch_indices i64 i32",
          "output_height = 1, output_width = 1, sampling_ratio = 0 (as the region needs), spatial_scale "
          "= 1.0, mode = avg or max, coordinate_transformation_mode = half_pixel or output_half_pixel",
          "regions (x0, y0, x1, y1) of the images x [N, C, H, W] named, sampled between pixels"),
      Describe<RoiAlignShape>("x, rois -> out", "i64 i32; out i64", "output_height = 1, output_width = 1",
                              "the shape of rewire.roi_align's out; rewire.max_roi_pool's too"),
      Describe<MaxRoiPool>(
          "x, rois -> out", "f32 f64", "spatial_scale = 1.0",
          "the largest pixels of regions (image, x0, y0, x1, y1) of x [N, C, H, W], as many as out "
          "[count, C, height, width] has room for"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

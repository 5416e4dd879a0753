// SPDX-License-Identifier: Apache-2.0
//
// Pools regions of images to one size.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {
namespace {

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
    checks.Dense("x", x).Dense("rois", rois).Dense("batch_indices", images).Dense("out", out).Rank("x", x, 4);
    checks.Rank("rois", rois, 2).SameDType("rois", rois, "x", x).SameDType("out", out, "x", x);
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "rois", rois);
    if (Status s = checks.NoOverlap("out", out, "batch_indices", images).Take(); !s.ok()) return s;
    const std::int64_t count = rois.dim(0);
    const std::int64_t of_rois[] = {count, 4};
    const std::int64_t of_out[] = {count, x.dim(1), height, width};
    checks.Shape("rois", rois, ShapeView(of_rois, 2)).Shape("batch_indices", images, ShapeView(&count, 1));
    if (Status s = checks.Shape("out", out, ShapeView(of_out, 4)).Take(); !s.ok()) return s;
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

 private:
  // Two neighbors along an axis, as offsets into a plane, and what part of the value is the second one's.
  struct Neighbors {
    std::int64_t first = 0;
    std::int64_t second = 0;
    double part = 0;
    bool inside = false;
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
      if (!(at >= -1 && at <= static_cast<double>(size_)) || size_ == 0) return {};
      at = std::clamp(at, 0.0, static_cast<double>(size_ - 1));
      const auto pixel = ToType<std::int64_t>(at);
      return {pixel * step_, std::min(size_ - 1, pixel + 1) * step_, at - static_cast<double>(pixel), true};
    }

    double start_, bin_;
    std::int64_t size_, step_, per_bin_;
    Neighbors stored_[kStored];
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
        // Rows without samples are no work, and there may be more than a run ever ends with.
        for (std::int64_t i = 0; taken > 0 && i < per_row; ++i) {
          const Neighbors down = region.rows.At(row, i);
          const auto line = [&](std::int64_t j, std::int64_t end) {
            for (; j < end; ++j) {
              const Neighbors across = region.columns.At(column, j);
              double terms[4] = {0, 0, 0, 0};
              if (down.inside && across.inside) {
                const double above = 1 - down.part, before = 1 - across.part;
                terms[0] = above * before * static_cast<double>(in[down.first + across.first]);
                terms[1] = above * across.part * static_cast<double>(in[down.first + across.second]);
                terms[2] = down.part * before * static_cast<double>(in[down.second + across.first]);
                terms[3] = down.part * across.part * static_cast<double>(in[down.second + across.second]);
              }
              sum += terms[0] + terms[1] + terms[2] + terms[3];
              if (!maximum) continue;
              for (const double term : terms) most = std::max(most, term);
            }
          };
          if (!pace.For(per_column, 8, line)) return;
        }
        *out++ = static_cast<T>(!maximum ? sum / samples_taken : taken == 0 ? 0 : most);
      }
    }
  }
};

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
    checks.Dense("x", x).Dense("rois", rois).Dense("out", out).Rank("x", x, 4).Rank("rois", rois, 2);
    checks.Rank("out", out, 4).SameDType("rois", rois, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "rois", rois).Take(); !s.ok())
      return s;
    const std::int64_t of_rois[] = {rois.dim(0), 5};
    const std::int64_t of_out[] = {rois.dim(0), x.dim(1), out.dim(2), out.dim(3)};
    checks.Shape("rois", rois, ShapeView(of_rois, 2)).Shape("out", out, ShapeView(of_out, 4));
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
      Bins *of_rows = nullptr, *of_columns = nullptr;
      if (Status s = Workspace(std::max<std::int64_t>(1, out.dim(2)), &of_rows); !s.ok()) return s;
      if (Status s = Workspace(std::max<std::int64_t>(1, out.dim(3)), &of_columns); !s.ok()) return s;
      for (std::int64_t r = 0; r < rois.dim(0) && outputs > 0; ++r) {
        const T* roi = regions + r * 5;
        const T* image = x.data<T>() + ToType<std::int64_t>(roi[0]) * channels * plane;
        T* to = out.data<T>() + r * channels * outputs;
        const Bins rows = Split(roi[2], roi[4], x.dim(2), out.dim(2), of_rows, pace);
        const Bins columns = Split(roi[1], roi[3], x.dim(3), out.dim(3), of_columns, pace);
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
    return true;
  }

 private:
  // The pixels of one bin along an axis, or of all: [begin, end).
  struct Bins {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
  };

  // Finds the pixels of each bin of a region that goes from `first` to `last` along an axis.
  template <typename T>
  Bins Split(T first, T last, std::int64_t size, std::int64_t count, Bins* bins, Pace& pace) const {
    // Far outside of any image, and products with sizes of images and of out do not overflow.
    constexpr double kFar = 0x1p40;
    const auto pixel = [&](T given) {
      const double at = std::round(static_cast<double>(given) * scale);
      return ToType<std::int64_t>(at != at ? 0 : std::clamp(at, -kFar, kFar));
    };
    const std::int64_t start = pixel(first), extent = std::max<std::int64_t>(1, pixel(last) - start + 1);
    static_cast<void>(pace.For(count, 16, [=](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        const std::int64_t behind = (Times(i + 1, extent) + count - 1) / count;
        bins[i] = {std::clamp<std::int64_t>(start + Times(i, extent) / count, 0, size),
                   std::clamp<std::int64_t>(start + behind, 0, size)};
      }
    }));
    return {bins[0].begin, bins[count - 1].end};
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
    Dims input, regions;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("rois", rois, &regions); !s.ok()) return s;
    if (input.rank() != 4 || regions.rank() != 2)
      return ValueError("x is ", input.view(), " and rois ", regions.view(), ", expected rank 4 and 2");
    const std::int64_t shape[] = {regions[0], input[1], height, width};
    return WriteShape(Dims(ShapeView(shape, 4)), out);
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

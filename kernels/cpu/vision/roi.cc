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
#include "rewire/kernels/cpu/support/largest_above.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

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
        const std::int64_t plane = Times(x.dim(2), x.dim(3));
        return ParallelFor(Times(count, x.dim(1)), GrainOf(kGrain, height, width, 16),
                           [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                             for (std::int64_t i = begin; i < end && !pace.stopped(); ++i) {
                               const std::int64_t roi = i / x.dim(1);
                               const T* in = x.data<T>() + (number[roi] * x.dim(1) + i % x.dim(1)) * plane;
                               Pool(in, x.dim(2), x.dim(3), rois.data<T>() + roi * 4,
                                    out.data<T>() + i * height * width, pace);
                             }
                           });
      });
    });
  }

 private:
  template <typename T>
  void Pool(const T* in, std::int64_t rows, std::int64_t columns, const T* roi, T* out, Pace& pace) const {
    const double offset = half_pixel ? 0.5 : 0;
    const double x0 = static_cast<double>(roi[0]) * scale - offset;
    const double y0 = static_cast<double>(roi[1]) * scale - offset;
    double roi_width = static_cast<double>(roi[2]) * scale - offset - x0;
    double roi_height = static_cast<double>(roi[3]) * scale - offset - y0;
    if (!half_pixel) {  // as it was before half pixels came: at least one pixel
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    const double bin_height = roi_height / static_cast<double>(height);
    const double bin_width = roi_width / static_cast<double>(width);
    const std::int64_t per_row = SamplesOf(bin_height);
    const std::int64_t per_column = SamplesOf(bin_width);
    const std::int64_t taken = Times(per_row, per_column);
    for (std::int64_t o = 0; o < Times(height, width) && pace.Spend(16); ++o) {
      const std::int64_t row = o / width;
      const std::int64_t column = o % width;
      const double top = y0 + static_cast<double>(row) * bin_height;
      const double left = x0 + static_cast<double>(column) * bin_width;
      double sum = 0;
      double most = -std::numeric_limits<double>::infinity();
      for (std::int64_t i = 0; i < taken && pace.Spend(16); ++i) {
        const std::int64_t down = i / per_column;
        const std::int64_t across = i % per_column;
        const double y = top + (static_cast<double>(down) + 0.5) * bin_height / static_cast<double>(per_row);
        const double x =
            left + (static_cast<double>(across) + 0.5) * bin_width / static_cast<double>(per_column);
        const Corners corners = Sample(in, rows, columns, y, x);
        sum += corners.terms[0] + corners.terms[1] + corners.terms[2] + corners.terms[3];
        for (double term : corners.terms) most = std::max(most, term);
      }
      const auto samples_taken = static_cast<double>(std::max<std::int64_t>(1, taken));
      out[o] = static_cast<T>(!maximum ? sum / samples_taken : taken == 0 ? 0 : most);
    }
  }
  std::int64_t SamplesOf(double bin) const {
    return samples > 0 ? samples : std::max<std::int64_t>(0, ToType<std::int64_t>(std::ceil(bin)));
  }

  // The four weighted neighbors: averages take their sum, maxima the largest of them, as ONNX has it.
  struct Corners {
    double terms[4] = {0, 0, 0, 0};
  };
  template <typename T>
  static Corners Sample(const T* in, std::int64_t rows, std::int64_t columns, double y, double x) {
    Corners corners;
    if (y < -1 || y > static_cast<double>(rows) || x < -1 || x > static_cast<double>(columns) || rows == 0 ||
        columns == 0 || y != y || x != x)
      return corners;
    y = std::clamp(y, 0.0, static_cast<double>(rows - 1));
    x = std::clamp(x, 0.0, static_cast<double>(columns - 1));
    const auto y0 = ToType<std::int64_t>(y);
    const auto x0 = ToType<std::int64_t>(x);
    const double dy = y - static_cast<double>(y0);
    const double dx = x - static_cast<double>(x0);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = std::min(rows - 1, y0 + i / 2);
      const std::int64_t column = std::min(columns - 1, x0 + i % 2);
      const double weight = (i / 2 == 0 ? 1 - dy : dy) * (i % 2 == 0 ? 1 - dx : dx);
      corners.terms[i] = weight * static_cast<double>(in[row * columns + column]);
    }
    return corners;
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
      const std::int64_t plane = Times(x.dim(2), x.dim(3));
      const std::int64_t outputs = Times(out.dim(2), out.dim(3));
      for (std::int64_t i = 0; i < Times(rois.dim(0), x.dim(1)) && pace.Spend(8); ++i) {
        const T* roi = regions + i / x.dim(1) * 5;
        const auto image = ToType<std::int64_t>(roi[0]);
        Pool(x.data<T>() + (image * x.dim(1) + i % x.dim(1)) * plane, x, roi, out,
             out.data<T>() + i * outputs, pace);
      }
      return pace.status();
    });
  }

 private:
  template <typename T>
  void Pool(const T* in, TensorView x, const T* roi, TensorView out, T* to, Pace& pace) const {
    // Far outside of any image, and products with sizes of images and of out do not overflow.
    constexpr double kFar = 0x1p40;
    const auto pixel = [&](int i) {
      const double at = std::round(static_cast<double>(roi[i]) * scale);
      return ToType<std::int64_t>(at != at ? 0 : std::clamp(at, -kFar, kFar));
    };
    const std::int64_t left = pixel(1);
    const std::int64_t top = pixel(2);
    const std::int64_t columns = std::max<std::int64_t>(1, pixel(3) - left + 1);
    const std::int64_t rows = std::max<std::int64_t>(1, pixel(4) - top + 1);
    const std::int64_t height = out.dim(2);
    const std::int64_t width = out.dim(3);
    for (std::int64_t o = 0; o < Times(height, width) && pace.Spend(16); ++o) {
      const auto first = [](std::int64_t i, std::int64_t size, std::int64_t bins) {
        return Times(i, size) / bins;
      };
      const auto last = [](std::int64_t i, std::int64_t size, std::int64_t bins) {
        return (Times(i + 1, size) + bins - 1) / bins;
      };
      const std::int64_t y0 = std::clamp<std::int64_t>(top + first(o / width, rows, height), 0, x.dim(2));
      const std::int64_t y1 = std::clamp<std::int64_t>(top + last(o / width, rows, height), 0, x.dim(2));
      const std::int64_t x0 = std::clamp<std::int64_t>(left + first(o % width, columns, width), 0, x.dim(3));
      const std::int64_t x1 = std::clamp<std::int64_t>(left + last(o % width, columns, width), 0, x.dim(3));
      T most = y1 <= y0 || x1 <= x0 ? T{0} : -std::numeric_limits<T>::infinity();
      for (std::int64_t i = y0; i < y1; ++i) {
        const T* line = in + i * x.dim(3) + x0;
        const auto largest = [&](std::int64_t j, std::int64_t end) {
          most = LargestAbove(most, line + j, end - j);
        };
        if (!pace.Spend(1) || !pace.For(x1 - x0, 1, largest)) return;
      }
      to[o] = most;
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

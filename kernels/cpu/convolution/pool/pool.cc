// SPDX-License-Identifier: Apache-2.0
// Pooling of images with one to three spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/pool/largest_windows.h"
#include "rewire/kernels/cpu/convolution/pool/pool_channels_last.h"
#include "rewire/kernels/cpu/convolution/pool/window_loops.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// The most rows of a window, and the most work of one, for which PoolLine is made.
constexpr std::int64_t kMostRows = 64;

// Elements as WindowsKernel has them.
template <typename T>
using Listed = std::conditional_t<std::is_same_v<T, BFloat16>, std::uint16_t, T>;

bool IsListed(const Window& window, std::int64_t channels) {
  return Times(window.axes[0].kernel, window.axes[1].kernel) <= kMostRows &&
         Times(window.taps(), channels) <= kPace;
}

// One row of the result of a pool with the channels last.
template <typename T>
class PoolLine {
 public:
  PoolLine(TensorView x, TensorView out, const Window& window, std::int64_t line, PoolKind kind)
      : columns_(window.axes[2]), channels_(x.dim(x.ndim() - 1)), kind_(kind) {
    const auto& [depth, rows, columns] = window.axes;
    const std::int64_t oy = line % rows.output, oz = line / rows.output % depth.output;
    const std::int64_t image = line / rows.output / depth.output;
    out_ = static_cast<Listed<T>*>(out.raw_data()) + line * columns.output * channels_;
    std::int64_t z0, z1, y0, y1;
    depth.Inside(oz, &z0, &z1);
    rows.Inside(oy, &y0, &y1);
    const bool pads = kind == PoolKind::kMeanWithPads;
    outer_count_ = Times(CoveredBy(depth, oz, pads), CoveredBy(rows, oy, pads));
    for (std::int64_t i = z0; i < z1; ++i) {
      const std::int64_t z = depth.start(oz) + i * depth.dilation;
      for (std::int64_t j = y0; j < y1; ++j) {
        const std::int64_t y = rows.start(oy) + j * rows.dilation;
        lines_[row_count_++] = static_cast<const Listed<T>*>(x.raw_data()) +
                               ((image * depth.input + z) * rows.input + y) * columns.input * channels_;
      }
    }
  }

  // Positions whose windows lie inside the columns are run together, those at the borders one by one.
  void Run(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inside = (columns_.input - columns_.reach() + columns_.before) / columns_.stride + 1;
    for (std::int64_t o = begin; o < end;) {
      std::int64_t first, last;
      columns_.Inside(o, &first, &last);
      const bool whole = first == 0 && last == columns_.kernel;
      const std::int64_t count = whole ? std::min(end, inside) - o : 1;
      RunPart(o, count, first, std::max(first, last));
      o += count;
    }
  }

 private:
  // `count` positions from `position` on, by taps [first, last).
  void RunPart(std::int64_t position, std::int64_t count, std::int64_t first, std::int64_t last) const {
    const Listed<T>* from[kMostRows];
    const std::int64_t start = (columns_.start(position) + first * columns_.dilation) * channels_;
    const std::int64_t row_count = first < last ? row_count_ : 0;
    for (std::int64_t r = 0; r < row_count; ++r) from[r] = lines_[r] + start;
    WindowsInRow<Listed<T>> windows{
        channels_, count, columns_.stride * channels_, last - first, columns_.dilation * channels_,
        row_count, from,  out_ + position * channels_};
    if constexpr (std::is_floating_point_v<T>) {
      if (kind_ != PoolKind::kLargest) {
        const std::int64_t covered = CoveredBy(columns_, position, kind_ == PoolKind::kMeanWithPads);
        windows.divisor = static_cast<T>(Times(outer_count_, covered));
        return BestMeanWindowsKernel<T>()(windows);
      }
    }
    if constexpr (!std::is_same_v<T, double>) BestLargestWindowsKernel<Listed<T>>()(windows);
  }

  const WindowAxis& columns_;
  std::int64_t channels_;
  PoolKind kind_;
  std::int64_t outer_count_;  // positions of the two outer axes that the windows cover
  Listed<T>* out_;
  std::int64_t row_count_ = 0;  // that lie in the image
  const Listed<T>* lines_[kMostRows];
};

template <typename T>
Status PoolLinesChannelsLast(TensorView x, TensorView out, const Window& window, PoolKind kind) {
  const std::int64_t lines = Times(x.dim(0), window.axes[0].output, window.axes[1].output);
  const std::int64_t columns = window.axes[2].output;
  const std::int64_t work = Plus(1, Times(window.taps(), x.dim(x.ndim() - 1)));
  return ParallelFor(lines, GrainOf(8 * kGrain, columns, Plus(8 * kPositionWork, work)),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t line = begin; line < end; ++line) {
                         const PoolLine<T> of(x, out, window, line, kind);
                         const auto run = [&](std::int64_t o, std::int64_t last) { of.Run(o, last); };
                         if (!pace.For(columns, work, run)) return;
                       }
                     });
}

struct MaxPool {
  static constexpr const char* kName = names::kMaxPool;
  WindowAttributes attributes;
  bool column_major = false;
  bool channels_last = false;
  static Status Make(Attributes& given, MaxPool* pool) {
    pool->attributes.Read(given, true, true);
    pool->channels_last = given.Choice("layout", {"NCHW", "NHWC"}, 0) == 1;
    pool->column_major = given.Bool("storage_order", false);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out, std::optional<TensorView> out_indices) const {
    Window window;
    if (channels_last) {
      if (out_indices) return ValueError("out_indices is given, which layout NHWC does not have");
      if (Status s = CheckPoolChannelsLast(attributes, x, out, &window); !s.ok()) return s;
      return ForType(Types<float, double, std::int8_t, std::uint8_t, BFloat16>(), "x", x,
                     [&](auto tag) { return RunChannelsLast<typename decltype(tag)::type>(x, out, window); });
    }
    if (Status s = CheckPool(attributes, x, out, &window); !s.ok()) return s;
    if (out_indices) {
      Checks checks;
      checks.Dense("out_indices", *out_indices).Shape("out_indices", *out_indices, out.dims());
      checks.NoOverlap("out_indices", *out_indices, "x", x)
          .NoOverlap("out_indices", *out_indices, "out", out);
      if (Status s = checks.Take(); !s.ok()) return s;
      if (!out_indices->Is<std::int64_t>())
        return WrongDType(Types<std::int64_t>(), "out_indices", *out_indices);
    }
    return ForType(Types<float, double, std::int8_t, std::uint8_t, BFloat16>(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, out, out_indices, window); });
  }

 private:
  template <typename T>
  static T Least() {
    using Limits = std::numeric_limits<Computed<T>>;
    return static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  }
  // The second one if it is larger, or NaN.
  template <typename T>
  static bool IsLarger(T most, T value) {
    const auto a = static_cast<Computed<T>>(most), b = static_cast<Computed<T>>(value);
    return b > a || b != b;
  }
  template <typename T>
  static T Larger(T most, T value) {
    return IsLarger(most, value) ? value : most;
  }

  template <typename T>
  static Status RunChannelsLast(TensorView x, TensorView out, const Window& window) {
    if constexpr (!std::is_same_v<T, double>) {
      if (IsListed(window, x.dim(x.ndim() - 1)))
        return PoolLinesChannelsLast<T>(x, out, window, PoolKind::kLargest);
    }
    return PoolChannelsLast<T>(
        x, out, window, Least<T>(),
        [](const T* from, T* to, std::int64_t channels) {
          for (std::int64_t c = 0; c < channels; ++c) to[c] = Larger(to[c], from[c]);
        },
        [](T*, std::int64_t, std::int64_t, const std::int64_t(&)[kMaxSpatial]) {});
  }

  template <typename T>
  Status Run(TensorView x, TensorView out, const std::optional<TensorView>& indices,
             const Window& window) const {
    const T least = Least<T>();
    T* to = out.data<T>();
    if (!indices) {
      const auto largest = [=](const Covered<T>& covered, std::int64_t o, std::int64_t) {
        T most = least;
        covered.ForEach([&](T value, std::int64_t) { most = Larger(most, value); });
        to[o] = most;
      };
      if constexpr (std::is_same_v<T, BFloat16>)
        return ForEachWindow<T>(x, window, largest);
      else
        return Slide<T>(x, out, window, PoolKind::kLargest, largest);
    }
    std::int64_t* where = indices->data<std::int64_t>();
    return ForEachWindow<T>(x, window, [&](const Covered<T>& covered, std::int64_t o, std::int64_t plane) {
      T most = least;
      std::int64_t best = -1;
      covered.ForEach([&](T value, std::int64_t index) {
        if (best >= 0 && !IsLarger(most, value)) return;
        most = value;
        best = index;
      });
      to[o] = most;
      where[o] = best < 0 ? -1 : plane * window.inputs() + Position(best, window);
    });
  }

  // ONNX counts from the start of the plane in row-major order, or with the axes reversed.
  std::int64_t Position(std::int64_t index, const Window& window) const {
    if (!column_major) return index;
    const std::int64_t x = index % window.axes[2].input;
    const std::int64_t y = index / window.axes[2].input % window.axes[1].input;
    const std::int64_t z = index / (window.axes[2].input * window.axes[1].input);
    return (x * window.axes[1].input + y) * window.axes[0].input + z;
  }
};

struct AveragePool {
  static constexpr const char* kName = names::kAvgPool;
  WindowAttributes attributes;
  bool count_pad = false;
  bool channels_last = false;
  static Status Make(Attributes& given, AveragePool* pool) {
    pool->attributes.Read(given, true, true);
    pool->channels_last = given.Choice("layout", {"NCHW", "NHWC"}, 0) == 1;
    pool->count_pad = given.Bool("count_include_pad", false);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    Window window;
    if (channels_last) {
      if (Status s = CheckPoolChannelsLast(attributes, x, out, &window); !s.ok()) return s;
      return ForType(Floats(), "x", x,
                     [&](auto tag) { return RunChannelsLast<typename decltype(tag)::type>(x, out, window); });
    }
    if (Status s = CheckPool(attributes, x, out, &window); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = out.data<T>();
      const auto mean = [&, to](const Covered<T>& covered, std::int64_t o, std::int64_t) {
        T sum = 0;
        covered.ForEach([&](T value, std::int64_t) { sum += value; });
        const std::int64_t count = count_pad ? WithPads(window, covered.position) : covered.count();
        to[o] = count == 0 ? T{0} : sum / static_cast<T>(count);
      };
      return Slide<T>(x, out, window, count_pad ? PoolKind::kMeanWithPads : PoolKind::kMean, mean);
    });
  }

 private:
  template <typename T>
  Status RunChannelsLast(TensorView x, TensorView out, const Window& window) const {
    if (IsListed(window, x.dim(x.ndim() - 1)))
      return PoolLinesChannelsLast<T>(x, out, window, count_pad ? PoolKind::kMeanWithPads : PoolKind::kMean);
    return PoolChannelsLast<T>(
        x, out, window, T{0},
        [](const T* from, T* to, std::int64_t channels) {
          for (std::int64_t c = 0; c < channels; ++c) to[c] += from[c];
        },
        [&](T* to, std::int64_t channels, std::int64_t met, const std::int64_t(&position)[kMaxSpatial]) {
          const std::int64_t count = count_pad ? WithPads(window, position) : met;
          for (std::int64_t c = 0; c < channels; ++c)
            to[c] = count == 0 ? T{0} : to[c] / static_cast<T>(count);
        });
  }

  // Window positions on the image or its pads: ceil_mode may reach past both.
  static std::int64_t WithPads(const Window& window, const std::int64_t (&position)[kMaxSpatial]) {
    std::int64_t count = 1;
    for (int i = 0; i < kMaxSpatial; ++i) count = Times(count, CoveredBy(window.axes[i], position[i], true));
    return count;
  }
};

}  // namespace

std::span<const Kernel> PoolKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MaxPool>(
          "x -> out, out_indices?", "x, out f32 f64 i8 u8 bf16; out_indices i64",
          "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, ceil_mode = 0, "
          "storage_order = 0, layout = NCHW or NHWC (without out_indices)",
          "the largest element under each window of x [N, C, ...], NaN if one is, and its index in x; the "
          "index counts the spatial axes backwards with storage_order = 1",
          kSelects | kLayout),
      Describe<AveragePool>(
          "x -> out", "f32 f64",
          "kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
          "ceil_mode = 0, count_include_pad = 0, layout = NCHW or NHWC",
          "the mean under each window of x [N, C, ...], of the elements on the image or with its pads",
          kLayout),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Pooling of images with one to three spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/layout_attribute.h"
#include "rewire/kernels/cpu/convolution/pool/largest_places.h"
#include "rewire/kernels/cpu/convolution/pool/narrow_planes.h"
#include "rewire/kernels/cpu/convolution/pool/pool_channels_last.h"
#include "rewire/kernels/cpu/convolution/pool/pool_lines.h"
#include "rewire/kernels/cpu/convolution/pool/window_loops.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct MaxPool : contract::MaxPoolAttributes {
  static constexpr const char* kName = names::kMaxPool;
  WindowAttributes attributes;
  bool channels_last = false;
  static Status Make(Attributes& given, MaxPool* pool) {
    pool->attributes.Read(given, true, true);
    pool->channels_last = contract::ReadChannelsLast(given);
    pool->Read(given);
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
    return (b > a) | (b != b);
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
        return PoolPlanes<T>(x, out, window, PoolKind::kLargest, largest);
    }
    std::int64_t* where = indices->data<std::int64_t>();
    if (LargestPlaces<T>::Can(window)) return RunWithPlaces<T>(x, to, where, window);
    return ForEachWindow<T>(x, window, [&](const Covered<T>& covered, std::int64_t o, std::int64_t plane) {
      T most = least;
      std::int64_t best = -1;
      covered.ForEach([&](T value, std::int64_t index) {
        if (best >= 0 && !IsLarger(most, value)) return;
        most = value;
        best = index;
      });
      to[o] = most;
      where[o] = Place(best, plane, window);
    });
  }

  template <typename T>
  Status RunWithPlaces(TensorView x, T* to, std::int64_t* where, const Window& window) const {
    constexpr std::int64_t kColumns = LargestPlaces<T>::kColumns;
    const std::int64_t lines = Times(window.axes[0].output, window.axes[1].output);
    const std::int64_t columns = window.axes[2].output;
    // Short lines of a plane are one piece.
    const std::int64_t together = std::max<std::int64_t>(1, kColumns / std::max<std::int64_t>(1, columns));
    const auto run = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
      LargestPlaces<T> largest(window);
      for (std::int64_t i = begin, some = 0; i < end; i += some) {
        const std::int64_t plane = i / lines;
        some = std::min({together, end - i, lines - i % lines});
        for (std::int64_t first = 0; first < columns; first += kColumns) {
          const std::int64_t last = std::min(columns, first + kColumns), count = some * (last - first);
          if (!pace.Spend(Times(count, Plus(4, window.taps())) / 4 + some * kPositionWork)) return;
          largest.Find({x.data<T>() + plane * window.inputs(), i % lines, some, first, last}, Least<T>(),
                       [](auto most, auto value) { return IsLarger(most, value); });
          T* const results = to + i * columns + first;
          for (std::int64_t o = 0; o < count; ++o) results[o] = largest.most(o);
          std::int64_t* const places = where + i * columns + first;
          for (std::int64_t o = 0; o < count; ++o) places[o] = Place(largest.place(o), plane, window);
        }
      }
    };
    return ParallelFor(Times(x.dim(0), x.dim(1), lines), GrainOf(kGrain, columns, window.taps()), run);
  }

  // An element's place in x from that in its plane.
  std::int64_t Place(std::int64_t index, std::int64_t plane, const Window& window) const {
    return index < 0 ? -1 : plane * window.inputs() + Position(index, window);
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

struct AveragePool : contract::AveragePoolAttributes {
  static constexpr const char* kName = names::kAvgPool;
  WindowAttributes attributes;
  bool channels_last = false;
  static Status Make(Attributes& given, AveragePool* pool) {
    pool->attributes.Read(given, true, true);
    pool->channels_last = contract::ReadChannelsLast(given);
    pool->Read(given);
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
      const PoolKind kind = count_pad ? PoolKind::kMeanWithPads : PoolKind::kMean;
      return PoolPlanes<T>(x, out, window, kind, mean);
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

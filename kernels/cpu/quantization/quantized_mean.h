// SPDX-License-Identifier: Apache-2.0
//
// Means of integers that represent floats. Their sums are exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Sums that are computed side by side, of so few terms at once that 16 bits hold each.
inline constexpr std::int64_t kMeanLanes = 64, kTermsAtOnce = 255;

// Adds rows of kMeanLanes bytes, `step` apart, to the sums.
template <typename Q>
void AddByteRows(const Q* in, std::int64_t rows, std::int64_t step, std::int64_t* sums) {
  WideLoop([=] {
    using Lane = std::conditional_t<std::is_signed_v<Q>, std::int16_t, std::uint16_t>;
    const Q* from = in;
    for (std::int64_t left = rows; left > 0; left -= kTermsAtOnce) {
      Lane lanes[kMeanLanes] = {};
      for (std::int64_t r = std::min(left, kTermsAtOnce); r > 0; --r, from += step) {
        for (std::int64_t l = 0; l < kMeanLanes; ++l) lanes[l] = static_cast<Lane>(lanes[l] + from[l]);
      }
      for (std::int64_t l = 0; l < kMeanLanes; ++l) sums[l] += lanes[l];
    }
  });
}

// Adds `count` rows of up to kMeanLanes bytes, which follow each other, to the sums. Several are taken as one
// row of about kMeanLanes bytes. What its lanes read of the next one is not used.
template <typename Q>
void AddShortByteRows(const Q* in, std::int64_t count, std::int64_t width, std::int64_t* sums) {
  const std::int64_t at_once = kMeanLanes / width, step = at_once * width, bytes = count * width;
  const std::int64_t rows =
      bytes < kMeanLanes ? 0 : std::min(count / at_once, (bytes - kMeanLanes) / step + 1);
  std::int64_t lanes[kMeanLanes] = {};
  AddByteRows(in, rows, step, lanes);
  for (std::int64_t i = 0; i < at_once; ++i) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += lanes[i * width + j];
  }
  for (std::int64_t r = rows * at_once; r < count; ++r) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += in[r * width + j];
  }
}

// x as [outer, count, width], of which the middle is reduced.
struct MeanSizes {
  std::int64_t outer = 1, count = 1, width = 1;
};
inline std::optional<MeanSizes> MeanSizesOf(ShapeView x, const bool (&reduced)[kMaxKernelRank]) {
  MeanSizes sizes;
  bool has_reduced = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 1) continue;
    if (reduced[i] && sizes.width != 1) return std::nullopt;
    (reduced[i] ? sizes.count : has_reduced ? sizes.width : sizes.outer) *= x[i];
    has_reduced = has_reduced || reduced[i];
  }
  return sizes;
}

struct QuantizedMean {
  static constexpr const char* kName = names::kMeanQuantized;
  ReduceAttributes axes;  // those of size 1 may stay or not
  Quantization x, out;

  static Status Make(Attributes& attributes, QuantizedMean* mean) {
    const auto byte = [&](const char* name) {
      return static_cast<std::int32_t>(attributes.Int(name, 0, -128, 255));
    };
    mean->axes.axes = attributes.Ints("axes", {});
    for (const char* name : {"x_scale", "scale"}) attributes.Require(name);
    mean->x = {static_cast<float>(attributes.Float("x_scale", 1)), byte("x_zero"), 0, 0};
    mean->out = {static_cast<float>(attributes.Float("scale", 1)), byte("zero"), 0, 0};
    return Status();
  }

  Status operator()(TensorView from, TensorView to) const {
    Checks checks;
    checks.Dense("x", from).Dense("out", to).NoOverlap("out", to, "x", from).SameDType("out", to, "x", from);
    if (Status s = checks.Take(); !s.ok()) return s;
    bool reduced[kMaxKernelRank];
    Dims dims;
    if (Status s = axes.Resolve(from.dims(), std::nullopt, reduced, &dims); !s.ok()) return s;
    const std::optional<MeanSizes> sizes = MeanSizesOf(from.dims(), reduced);
    if (!sizes)
      return ValueError("axes of x with shape ", from.dims(), " lie apart, expected successive ones");
    if (to.size() != Times(sizes->outer, sizes->width)) {
      return ValueError("out has shape ", to.dims(), ", expected as many elements as [", sizes->outer, ", ",
                        sizes->width, "]");
    }
    return ForType(Types<std::uint8_t, std::int8_t>(), "x", from,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(from, *sizes, to); });
  }

 private:
  template <typename Q>
  Status Run(TensorView from, const MeanSizes& sizes, TensorView to) const {
    const auto [outer, count, width] = sizes;
    if (to.size() == 0) return Status();
    const std::int64_t parts = (width + kMeanLanes - 1) / kMeanLanes, columns = std::min(width, kMeanLanes);
    const double step = double{x.scale} / static_cast<double>(count);
    const std::int64_t shift = count * x.zero;
    Quantization by = out;
    by.least = std::numeric_limits<Q>::min();
    by.most = std::numeric_limits<Q>::max();
    return ParallelFor(Times(outer, parts), GrainOf(4 * kGrain, count, columns),
                       [&, count = count, width = width](std::int64_t begin, std::int64_t end, Pace& pace) {
                         constexpr std::int64_t kHeld = 256, kRowsAtOnce = 65536;
                         float means[kHeld];
                         // The means of successive outputs from `at` on.
                         std::int64_t held = 0, at = begin / parts * width + begin % parts * kMeanLanes;
                         const auto flush = [&] {
                           BestQuantizedMath<Q>().quantize(means, held, by, to.data<Q>() + at);
                           at += held;
                           held = 0;
                         };
                         for (std::int64_t task = begin; task < end; ++task) {
                           // The last part of a row is read from inside the one before.
                           const std::int64_t part = task % parts * kMeanLanes;
                           const std::int64_t first = std::min(part, width - columns);
                           const Q* in = from.data<Q>() + task / parts * count * width + first;
                           std::int64_t sums[kMeanLanes] = {};
                           for (std::int64_t r = 0; r < count; r += kRowsAtOnce) {
                             const std::int64_t rows = std::min(kRowsAtOnce, count - r);
                             if (!pace.Spend(rows * columns / 16 + columns)) return;
                             if (width == 1)
                               sums[0] += BestQuantizedMath<Q>().sum(in + r, rows);
                             else if (width <= kMeanLanes)
                               AddShortByteRows(in + r * width, rows, width, sums);
                             else
                               AddByteRows(in + r * width, rows, width, sums);
                           }
                           if (held + columns > kHeld) flush();
                           for (std::int64_t j = part - first; j < columns; ++j)
                             means[held++] = static_cast<float>(static_cast<double>(sums[j] - shift) * step);
                         }
                         flush();
                       });
  }
};

}  // namespace rewire::kernel::cpu

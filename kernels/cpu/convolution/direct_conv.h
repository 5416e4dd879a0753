// SPDX-License-Identifier: Apache-2.0
//
// Convolution tap by tap, for few output channels per group (above all depthwise), where a matrix product
// would mostly pack, and for integers. The sums of outputs that lie side by side stay in registers, and for
// each weight a scaled part of the image's row is added to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

struct ConvSizes {
  std::int64_t images, channels, in_channels, groups;  // in_channels: of one group
};

// Adds to `out` [images, channels, outputs] the convolution of x by w.
template <typename T>
class DirectConv {
 public:
  DirectConv(const Window& window, const ConvSizes& sizes, const T* x, const T* w, T* out)
      : depth_(window.axes[0]),
        rows_(window.axes[1]),
        columns_(window.axes[2]),
        sizes_(sizes),
        inputs_(window.inputs()),
        outputs_(window.outputs()),
        taps_(window.taps()),
        x_(x),
        w_(w),
        out_(out) {}

  [[nodiscard]] Status Run() const {
    const std::int64_t lines = depth_.output * rows_.output;
    return ParallelFor(Times(sizes_.images, sizes_.channels, lines),
                       GrainOf(4 * kGrain, columns_.output, sizes_.in_channels, taps_),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (; begin < end && !pace.stopped(); ++begin)
                           AddLine(begin / lines, begin % lines, pace);
                       });
  }

 private:
  // A vector of sums. Compilers split it where the CPU's are shorter.
  static constexpr int kLanes = 32 / sizeof(T);
  typedef T Sums __attribute__((vector_size(32)));
  typedef std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> Masks
      __attribute__((vector_size(32)));
  using Lanes = std::make_integer_sequence<int, kLanes>;

  // A line of one channel of one image, and the part of the window that lies inside the image there.
  struct Line {
    const T* x;  // the first channel of the group
    const T* w;
    T* to;
    std::int64_t z, y;  // where the window begins
    std::int64_t z0, z1, y0, y1;

    std::int64_t rows() const { return (z1 - z0) * (y1 - y0); }
  };
  // Rows [begin, end) of a line's window, counted over all channels.
  struct Rows {
    const Line& line;
    std::int64_t begin, end;
  };

  void AddLine(std::int64_t plane, std::int64_t number, Pace& pace) const {
    const std::int64_t image = plane / sizes_.channels, channel = plane % sizes_.channels;
    const std::int64_t group = channel / (sizes_.channels / sizes_.groups);
    const std::int64_t oz = number / rows_.output, oy = number % rows_.output;
    Line line{};
    line.x = x_ + (image * sizes_.groups + group) * sizes_.in_channels * inputs_;
    line.w = w_ + channel * sizes_.in_channels * taps_;
    line.to = out_ + plane * outputs_ + number * columns_.output;
    line.z = depth_.start(oz);
    line.y = rows_.start(oy);
    depth_.Inside(oz, &line.z0, &line.z1);
    rows_.Inside(oy, &line.y0, &line.y1);
    if (!pace.Spend(1) || line.z0 >= line.z1 || line.y0 >= line.y1) return;
    // A part of the window is so short that the host is asked often enough.
    const std::int64_t rows = Times(sizes_.in_channels, line.rows());
    const std::int64_t at_once =
        std::max<std::int64_t>(1, kPace / std::max<std::int64_t>(1, columns_.kernel));
    for (std::int64_t begin = 0; begin < rows; begin += at_once) {
      if (!AddRows({line, begin, std::min(rows, begin + at_once)}, pace)) return;
    }
  }

  // Returns false if told to stop.
  bool AddRows(const Rows& rows, Pace& pace) const {
    const std::int64_t work = (rows.end - rows.begin) * columns_.kernel;
    return pace.For(columns_.output, (work + 3) / 4, [&](std::int64_t begin, std::int64_t end) {
      WideLoop([this, &rows, begin, end] {
        if (columns_.stride == 1)
          AddOutputs<1>(rows, begin, end);
        else if (columns_.stride == 2)
          AddOutputs<2>(rows, begin, end);
        else
          AddOutputs<0>(rows, begin, end);
      });
    });
  }

  // visit(row of x from its first column on, weights of the window's row) for each row.
  template <typename Visit>
  void ForEachRow(const Rows& rows, const Visit& visit) const {
    const Line& line = rows.line;
    const std::int64_t height = line.y1 - line.y0, step = rows_.dilation * columns_.input;
    std::int64_t channel = 0, kz = line.z0, ky = line.y0;
    if (rows.begin > 0) {  // divisions take as long as a short window
      channel = rows.begin / line.rows();
      kz += rows.begin % line.rows() / height;
      ky += rows.begin % height;
    }
    for (std::int64_t left = rows.end - rows.begin; left > 0;) {
      const std::int64_t z = line.z + kz * depth_.dilation, y = line.y + ky * rows_.dilation;
      const T* x = line.x + channel * inputs_ + (z * rows_.input + y) * columns_.input;
      const T* w = line.w + channel * taps_ + (kz * rows_.kernel + ky) * columns_.kernel;
      const std::int64_t count = std::min(left, line.y1 - ky);
      for (std::int64_t i = 0; i < count; ++i) visit(x + i * step, w + i * columns_.kernel);
      left -= count;
      ky = line.y0;
      if (++kz < line.z1) continue;
      kz = line.z0;
      ++channel;
    }
  }

  void AddOne(const Rows& rows, std::int64_t o) const {
    std::int64_t first, last;
    columns_.Inside(o, &first, &last);
    const std::int64_t start = columns_.start(o), dilation = columns_.dilation;
    T sum = rows.line.to[o];
    ForEachRow(rows, [&](const T* x, const T* w) {
      for (std::int64_t k = first; k < last; ++k) sum += w[k] * x[start + k * dilation];
    });
    rows.line.to[o] = sum;
  }

  // Outputs [o, end). A stride of 0 stands for any.
  template <int kStride>
  void AddOutputs(const Rows& rows, std::int64_t o, std::int64_t end) const {
    // The windows of outputs [first, last) lie inside the columns.
    const std::int64_t room = columns_.input - columns_.reach() + columns_.before;
    const std::int64_t last = room < 0 ? 0 : room / columns_.stride + 1;
    const std::int64_t first = columns_.before <= 0 ? 0 : (columns_.before - 1) / columns_.stride + 1;
    while (o < end) {
      const std::int64_t many = std::min<std::int64_t>(4 * kLanes, std::min(end, last) - o);
      const std::int64_t count = std::min<std::int64_t>(kLanes, end - o);
      // Each sum waits for the one before it, so that four vectors take little longer than one.
      if (many > kLanes && o >= first && CanRead(rows, o, 4 * kLanes)) {
        AddBlock<kStride, 4, false>(rows, o, many);
        o += many;
        continue;
      }
      if (!CanRead(rows, o, kLanes) || columns_.kernel > kMostMasks) {
        for (std::int64_t i = o; i < o + count; ++i) AddOne(rows, i);
      } else if (o >= first && o + count <= last) {
        AddBlock<kStride, 1, false>(rows, o, count);
      } else {
        AddBlock<kStride, 1, true>(rows, o, count);
      }
      o += count;
    }
  }

  // Whether all that blocks of so many outputs read is memory of x, if not of the row.
  bool CanRead(const Rows& rows, std::int64_t o, std::int64_t count) const {
    const Line& line = rows.line;
    const auto row_at = [&](std::int64_t channel, std::int64_t kz, std::int64_t ky) {
      const std::int64_t z = line.z + kz * depth_.dilation, y = line.y + ky * rows_.dilation;
      return (line.x - x_) + channel * inputs_ + (z * rows_.input + y) * columns_.input;
    };
    const std::int64_t begin = columns_.start(o);
    const std::int64_t end = begin + (columns_.kernel - 1) * columns_.dilation + count * columns_.stride;
    return row_at(0, line.z0, line.y0) + begin >= 0 &&
           row_at(sizes_.in_channels - 1, line.z1 - 1, line.y1 - 1) + end <=
               sizes_.images * sizes_.groups * sizes_.in_channels * inputs_;
  }

  // The first `count` outputs of a vector or more. If they are masked, what lies outside of the columns is 0.
  static constexpr std::int64_t kMostMasks = 32;
  template <int kStride, int kVectors, bool kMasked>
  void AddBlock(const Rows& rows, std::int64_t o, std::int64_t count) const {
    // Fewer outputs than the vectors hold are copied, since others may lie behind them.
    constexpr std::int64_t kOutputs = kVectors * kLanes;
    T* const to = rows.line.to + o;
    T few[kOutputs];
    T* const outputs = count == kOutputs ? to : few;
    if (outputs == few) {
      for (std::int64_t i = 0; i < kOutputs; ++i) few[i] = i < count ? to[i] : T{0};
    }
    Sums sums[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) std::memcpy(&sums[v], outputs + v * kLanes, sizeof(Sums));
    const std::int64_t start = columns_.start(o), kernel = columns_.kernel, dilation = columns_.dilation;
    Masks masks[kMostMasks];
    if constexpr (kMasked) {
      for (std::int64_t k = 0; k < kernel; ++k) {
        for (std::int64_t i = 0; i < kLanes; ++i) {
          const std::int64_t at = start + k * dilation + i * columns_.stride;
          masks[k][i] = at >= 0 && at < columns_.input ? -1 : 0;
        }
      }
    }
    ForEachRow(rows, [&](const T* x, const T* w) {
      const T* from = x + start;
      for (std::int64_t k = 0; k < kernel; ++k, from += dilation) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          Sums values;
          Load<kStride>(from + v * kLanes * (kStride == 0 ? columns_.stride : kStride), &values, Lanes());
          if constexpr (kMasked) values = (Sums)((Masks)values & masks[k]);
          sums[v] += values * w[k];
        }
      }
    });
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) std::memcpy(outputs + v * kLanes, &sums[v], sizeof(Sums));
    if (outputs == few) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = few[i];
    }
  }

  template <int kStride, int... i>
  void Load(const T* from, Sums* to, std::integer_sequence<int, i...>) const {
    if constexpr (kStride == 1) {
      std::memcpy(to, from, sizeof(Sums));
    } else if constexpr (kStride == 2) {
      Sums low, high;
      std::memcpy(&low, from, sizeof(Sums));
      std::memcpy(&high, from + kLanes, sizeof(Sums));
      *to = __builtin_shufflevector(low, high, 2 * i...);
    } else {
      *to = Sums{from[i * columns_.stride]...};
    }
  }

  WindowAxis depth_, rows_, columns_;
  ConvSizes sizes_;
  std::int64_t inputs_, outputs_, taps_;
  const T* x_;
  const T* w_;
  T* out_;
};

}  // namespace rewire::kernel::cpu

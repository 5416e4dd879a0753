// SPDX-License-Identifier: Apache-2.0
//
// Convolution tap by tap: for each weight, a scaled row of the image is added to a row of the output. It is
// used for few output channels per group (above all depthwise), where a matrix product would mostly pack, and
// for integers.
#pragma once

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

struct ConvSizes {
  std::int64_t images, channels, in_channels, groups;  // in_channels: of one group
};

// Adds to `out` [images, channels, outputs]. `x` and `w` return the numbers: x(i) element i of the images,
// w(i) element i of the weights.
template <typename T, typename X, typename W>
class DirectConv {
 public:
  DirectConv(const Window& window, const ConvSizes& sizes, const X& x, const W& w, T* out)
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
    return ParallelFor(Times(sizes_.images, sizes_.channels),
                       GrainOf(4 * kGrain, outputs_, sizes_.in_channels, taps_),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end && !pace.stopped(); ++i)
                           AddPlane(i / sizes_.channels, i % sizes_.channels, pace);
                       });
  }

 private:
  // One channel of one image.
  void AddPlane(std::int64_t image, std::int64_t channel, Pace& pace) const {
    const std::int64_t group = channel / (sizes_.channels / sizes_.groups);
    std::int64_t weight = channel * sizes_.in_channels * taps_;
    T* plane = out_ + (image * sizes_.channels + channel) * outputs_;
    for (std::int64_t c = 0; c < sizes_.in_channels; ++c) {
      const std::int64_t in = ((image * sizes_.groups + group) * sizes_.in_channels + c) * inputs_;
      for (std::int64_t kz = 0; kz < depth_.kernel; ++kz) {
        for (std::int64_t ky = 0; ky < rows_.kernel; ++ky) {
          for (std::int64_t kx = 0; kx < columns_.kernel; ++kx) {
            if (!pace.Spend(4)) return;
            AddTap(plane, in, w_(weight++), kz, ky, kx, pace);
          }
        }
      }
    }
  }

  void AddTap(T* plane, std::int64_t in, T factor, std::int64_t kz, std::int64_t ky, std::int64_t kx,
              Pace& pace) const {
    std::int64_t z0, z1, y0, y1, first, last;
    depth_.Reached(kz, &z0, &z1);
    rows_.Reached(ky, &y0, &y1);
    columns_.Reached(kx, &first, &last);
    const std::int64_t shift = kx * columns_.dilation - columns_.before;
    for (std::int64_t oz = z0; oz < z1; ++oz) {
      const std::int64_t z = depth_.start(oz) + kz * depth_.dilation;
      for (std::int64_t oy = y0; oy < y1; ++oy) {
        const std::int64_t y = rows_.start(oy) + ky * rows_.dilation;
        T* to = plane + (oz * rows_.output + oy) * columns_.output;
        const std::int64_t from = in + (z * rows_.input + y) * columns_.input + shift;
        const auto part = [&](std::int64_t begin, std::int64_t end) {
          AddRow(to, from, factor, first + begin, first + end);
        };
        if (!pace.For(std::max<std::int64_t>(0, last - first), 1, part)) return;
      }
    }
  }

  void AddRow(T* to, std::int64_t from, T factor, std::int64_t first, std::int64_t last) const {
    if (columns_.stride == 1) {
      for (std::int64_t o = first; o < last; ++o) to[o] += factor * x_(from + o);
    } else {
      for (std::int64_t o = first; o < last; ++o) to[o] += factor * x_(from + o * columns_.stride);
    }
  }

  WindowAxis depth_, rows_, columns_;
  ConvSizes sizes_;
  std::int64_t inputs_, outputs_, taps_;
  X x_;
  W w_;
  T* out_;
};

}  // namespace rewire::kernel::cpu

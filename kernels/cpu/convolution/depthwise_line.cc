// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/depthwise_line.h"

#include <algorithm>
#include <array>

#include "rewire/kernels/cpu/convolution/depthwise.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"

namespace rewire::kernel::cpu {

void ConvolveDepthwise(const ImageCall& call, const Activation& activation, const OfLine& of, float* out,
                       std::uint16_t* rounded, Pace& pace) {
  const auto& [depth, rows, columns] = call.window.axes;
  const std::int64_t channels = call.out_channels;
  const std::int64_t oy = of.line % rows.output;
  const std::int64_t oz = of.line / rows.output % depth.output;
  const std::int64_t image = of.line / rows.output / depth.output;
  // The rows of the window that lie in the image.
  std::array<const float*, kMostTaps> from, weights;
  std::int64_t count = 0;
  for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
    const std::int64_t z = depth.start(oz) + kz * depth.dilation;
    for (std::int64_t ky = 0; ky < rows.kernel; ++ky) {
      const std::int64_t y = rows.start(oy) + ky * rows.dilation;
      if (z < 0 || z >= depth.input || y < 0 || y >= rows.input) continue;
      const auto i = static_cast<std::size_t>(count++);
      from[i] = call.x + ((image * depth.input + z) * rows.input + y) * columns.input * channels;
      weights[i] = call.w + (kz * rows.kernel + ky) * columns.kernel * channels;
    }
  }
  // The host is asked between runs of `most` positions. Eight are what the kernel computes at once, in
  // vectors.
  const std::int64_t outputs = of.end - of.begin;
  const std::int64_t work = 1 + Times(channels, count * columns.kernel) / 16;  // of one position
  const std::int64_t most =
      Times(outputs, work) <= kPace ? outputs : std::max<std::int64_t>(8, kPace / work / 8 * 8);
  const DepthwiseKernel kernel = BestDepthwiseKernel();
  DepthwiseRow row{channels,       0,       columns.stride, columns.dilation,
                   columns.kernel, count,   from.data(),    weights.data(),
                   call.bias,      nullptr, activation};
  row.pixels = columns.input;
  for (std::int64_t o = 0; o < outputs; o += row.count) {
    row.count = std::min(outputs - o, most);
    if (!pace.Spend(Times(row.count, work))) return;
    row.start = columns.start(of.begin + o);
    if (rounded != nullptr)
      row.rounded = rounded + o * channels;
    else
      row.out = out + o * channels;
    kernel(row);
  }
}

}  // namespace rewire::kernel::cpu

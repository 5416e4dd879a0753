// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of images with the channels last (depthwise.h).
#include <algorithm>
#include <array>
#include <utility>

#include "rewire/kernels/cpu/convolution/depthwise.h"
#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {
namespace {

struct PackedDepthwise {
  static constexpr const char kName[] = "rewire.packed.depthwise";
  ImageAttributes attributes;
  Activation activation;
  std::int64_t multiplier = 1;  // output channels of each input channel

  static Status Make(Attributes& given, PackedDepthwise* conv) {
    conv->multiplier = given.Int("multiplier", 1, 1);
    conv->activation.Read(given);
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    if (conv->attributes.channels % conv->multiplier != 0) {
      return ValueError("channels is ", conv->attributes.channels,
                        ", expected a multiple of multiplier, which is ", conv->multiplier);
    }
    return conv->attributes.CheckPositions();
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    ImageCall call;
    if (Status s = ResolveImageCall(attributes, x, w, bias, std::nullopt, out, &call); !s.ok()) return s;
    if (call.pairs) return WrongDType(Types<float>(), "w", w);
    const std::int64_t expected[] = {call.window.taps(), attributes.channels};
    if (Status s = CheckShape("w", w, ShapeView(expected, 2)); !s.ok()) return s;
    if (Times(call.in_channels, multiplier) != attributes.channels) {
      return ValueError("x has shape ", x.dims(), ", expected ", attributes.channels / multiplier,
                        " channels");
    }
    if (out.size() == 0) return Status();
    if (multiplier > 1) {
      if (Status s = Repeat(x.size(), &call.x); !s.ok()) return s;
    }
    return ParallelFor(
        call.lines(), GrainOf(12 * kGrain, call.window.axes[2].output, call.out_channels, call.window.taps()),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t line = begin; line < end && !pace.stopped(); ++line) RunLine(call, line, pace);
        });
  }

  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0);
    if (multiplier > 1 && x == nullptr) return false;
    if (multiplier > 1) sizes.Take(Times(SizeOf(x), multiplier), sizeof(float));
    return true;
  }

 private:
  // Each element as often as it has outputs. So what follows has an input channel for each output channel.
  Status Repeat(std::int64_t count, const float** x) const {
    float* repeated = nullptr;
    if (Status s = Workspace(Times(count, multiplier), &repeated); !s.ok()) return s;
    const float* from = std::exchange(*x, repeated);
    return ParallelFor(count, GrainOf(kGrain, multiplier), [&](std::int64_t begin, std::int64_t end) {
      RepeatEach(from + begin, end - begin, multiplier, repeated + begin * multiplier);
    });
  }

  void RunLine(const ImageCall& call, std::int64_t line, Pace& pace) const {
    const auto& [depth, rows, columns] = call.window.axes;
    const std::int64_t channels = call.out_channels;
    const std::int64_t oy = line % rows.output;
    const std::int64_t oz = line / rows.output % depth.output;
    const std::int64_t image = line / rows.output / depth.output;
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
    const std::int64_t work = 1 + Times(channels, count * columns.kernel) / 16;  // of one position
    const std::int64_t most = Times(columns.output, work) <= kPace
                                  ? columns.output
                                  : std::max<std::int64_t>(8, kPace / work / 8 * 8);
    const DepthwiseKernel kernel = BestDepthwiseKernel();
    DepthwiseRow row{channels,       0,       columns.stride, columns.dilation,
                     columns.kernel, count,   from.data(),    weights.data(),
                     call.bias,      nullptr, activation};
    row.pixels = columns.input;
    for (std::int64_t o = 0; o < columns.output; o += row.count) {
      row.count = std::min(columns.output - o, most);
      if (!pace.Spend(Times(row.count, work))) return;
      row.start = columns.start(o);
      const std::int64_t to = (line * columns.output + o) * channels;
      if (call.rounded != nullptr)
        row.rounded = call.rounded + to;
      else
        row.out = call.out + to;
      kernel(row);
    }
  }
};

}  // namespace

std::span<const Kernel> PackedDepthwiseKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedDepthwise>(
          "x, w, bias? -> out", "x, w, bias f32; out f32 bf16",
          "multiplier = 1; the others as rewire.packed.conv",
          "each channel of x [N, spatial..., channels / multiplier] with weights of its own, as many sets as "
          "multiplier says: w [taps, channels], plus bias [channels], then the activation"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

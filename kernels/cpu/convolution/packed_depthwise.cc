// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of images with the channels last (depthwise.h).
#include <utility>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/depthwise.h"
#include "rewire/kernels/cpu/convolution/depthwise_line.h"
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
  static constexpr const char* kName = names::kPackedDepthwise;
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
    if (call.unit != PanelUnit::kFloat) return WrongDType(Types<float>(), "w", w);
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
          for (std::int64_t line = begin; line < end && !pace.stopped(); ++line) {
            const std::int64_t outputs = call.window.axes[2].output, at = line * outputs * call.out_channels;
            ConvolveDepthwise(call, activation, {line, 0, outputs}, call.out + at,
                              call.rounded == nullptr ? nullptr : call.rounded + at, pace);
          }
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

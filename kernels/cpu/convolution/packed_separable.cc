// SPDX-License-Identifier: Apache-2.0
//
// A depthwise convolution and the product behind it, for images with the channels last. What lies between
// them goes from one to the other in parts that stay in the caches.
#include <algorithm>
#include <optional>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/depthwise_line.h"
#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {
namespace {

// The attributes' names of the activation between both convolutions.
constexpr ActivationNames kBetween = {"depthwise_activation", "depthwise_alpha", "depthwise_beta",
                                      "depthwise_post_scale", "depthwise_post_shift"};

struct PackedSeparable {
  static constexpr const char* kName = names::kPackedSeparable;
  ImageAttributes attributes;
  Activation between, activation;

  static Status Make(Attributes& given, PackedSeparable* conv) {
    conv->between.Read(given, kBetween);
    conv->activation.Read(given);
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    return conv->attributes.CheckPositions();
  }

  Status operator()(TensorView x, TensorView taps, std::optional<TensorView> taps_bias, TensorView w,
                    std::optional<TensorView> bias, std::optional<TensorView> addend, TensorView out) const {
    ImageCall call;
    if (Status s = ResolveImageCall(attributes, x, w, bias, addend, out, &call); !s.ok()) return s;
    if (call.pairs()) return WrongDType(Types<float, Float16>(), "w", w);
    const std::int64_t channels = call.in_channels;
    if (channels > kMostChannels)
      return ValueError("x has shape ", x.dims(), ", expected at most ", kMostChannels, " channels");
    const std::int64_t packed[] = {PackedColumns(attributes.channels), channels};
    const std::int64_t of_taps[] = {call.window.taps(), channels};
    Checks checks;
    checks.Shape("w", w, ShapeView(packed, 2)).Dense("taps", taps).SameDType("taps", taps, "x", x);
    checks.Shape("taps", taps, ShapeView(of_taps, 2)).NoOverlap("out", out, "taps", taps);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckAdded(taps_bias, std::nullopt, channels, out); !s.ok()) return s;
    if (out.size() == 0) return Status();
    RowsByPanels product = {nullptr,   0,           channels,   call.w,  attributes.channels,
                            call.bias, call.addend, activation, call.out};
    product.rounded = call.rounded;
    product.unit = call.unit;
    call.w = taps.data<float>();
    call.bias = IsGiven(taps_bias) ? taps_bias->data<float>() : nullptr;
    call.out_channels = channels;
    const std::int64_t positions = Times(call.lines(), call.window.axes[2].output);
    return Times(positions, channels) <= kFew ? RunFew(call, product, positions) : RunParts(call, product);
  }

  // The workspace holds the image between both convolutions, if that is little.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 3), *out = sizes.Tensor(-1, 3);
    if (x == nullptr || out == nullptr) return false;
    const std::int64_t positions = SizeOf(out) / std::max<std::int64_t>(1, LastDim(out));
    sizes.Take(std::clamp<std::int64_t>(Times(positions, LastDim(x)), 1, kFew), sizeof(float));
    return true;
  }

 private:
  static constexpr std::int64_t kPart = 32768;  // floats between both at a time, 128 KiB on the stack
  static constexpr std::int64_t kMostChannels = kPart / 8;
  // Floats that stay in the second cache anyway. Then threads share each of both, since there are few lines.
  static constexpr std::int64_t kFew = 65536;

  Status RunFew(const ImageCall& call, RowsByPanels product, std::int64_t positions) const {
    const std::int64_t outputs = call.window.axes[2].output;
    float* images = nullptr;
    const std::int64_t count = std::max<std::int64_t>(1, Times(positions, call.out_channels));
    if (Status s = Workspace(count, &images); !s.ok()) return s;
    Status convolved =
        ParallelFor(call.lines(), GrainOf(12 * kGrain, outputs, call.out_channels, call.window.taps()),
                    [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                      for (std::int64_t line = begin; line < end && !pace.stopped(); ++line)
                        ConvolveDepthwise(call, between, {line, 0, outputs},
                                          images + line * outputs * call.out_channels, nullptr, pace);
                    });
    if (!convolved.ok()) return convolved;
    product.x = images;
    product.rows = positions;
    return MultiplyRows(product);
  }

  Status RunParts(const ImageCall& call, const RowsByPanels& product) const {
    const std::int64_t outputs = call.window.axes[2].output, lines = call.lines();
    const std::int64_t most = kPart / call.out_channels / 8 * 8;  // positions; vectors have eight
    // Whole lines, or pieces of them.
    const std::int64_t pieces = (outputs + most - 1) / most;
    const std::int64_t piece = pieces > 1 ? (outputs / pieces + 8) / 8 * 8 : outputs;
    const std::int64_t at_once = pieces > 1 ? 1 : RowsOfBlock(lines, 1, most / outputs, 1);
    const std::int64_t tasks = (lines + at_once - 1) / at_once;
    const std::int64_t panels = PanelCount(product.columns);
    return ParallelFor(Times(tasks, pieces), 1, [&](std::int64_t begin, std::int64_t end, Pace& pace) {
      alignas(64) float part[kPart];
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i / pieces * at_once, last = std::min(lines, first + at_once);
        const std::int64_t from = i % pieces * piece, to = std::min(outputs, from + piece);
        for (std::int64_t line = first; line < last; ++line) {
          ConvolveDepthwise(call, between, {line, from, to},
                            part + (line - first) * (to - from) * call.out_channels, nullptr, pace);
          if (pace.stopped()) return;
        }
        RowsByPanels rows = product;
        rows.x = part;
        rows.rows = (last - first) * (to - from);
        const std::int64_t at = (first * outputs + from) * product.columns;
        rows.addend = product.addend.From(at);
        rows.out = product.out + at;
        if (product.rounded != nullptr) rows.rounded = product.rounded + at;
        if (!MultiplyPanels(rows, 0, panels, pace)) return;
      }
    });
  }
};

}  // namespace

std::span<const Kernel> PackedSeparableKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedSeparable>(
          "x, taps, taps_bias?, w, bias?, addend? -> out over addend",
          "x, taps, taps_bias, bias f32; w f32 f16; addend, out f32 bf16",
          "channels, kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
          "SAME_UPPER, SAME_LOWER or VALID; activation, alpha, beta, post_scale, post_shift as "
          "rewire.packed.matmul, and depthwise_activation, depthwise_alpha, depthwise_beta, "
          "depthwise_post_scale, depthwise_post_shift",
          "rewire.packed.depthwise of x [N, spatial..., C], with taps [taps, C], taps_bias [C] and the "
          "attributes depthwise_*, then rewire.packed.conv of that by windows of one position, with w packed "
          "from [channels, C], bias [channels], addend of out's shape and the activation. C is at most 4096"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of images of 8-bit integers with the channels last and packed weights
// (integer_depthwise.h).
#include <algorithm>
#include <array>
#include <numeric>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/integer_depthwise.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/product/packed_integer_call.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// Finishing a sum takes as long as this many products.
constexpr std::int64_t kFinishWork = 8;

struct PackedIntegerDepthwise {
  static constexpr const char* kName = names::kPackedDepthwiseInteger;
  ImageAttributes attributes;
  IntegerFinishAttributes finish;

  static Status Make(Attributes& given, PackedIntegerDepthwise* conv) {
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    if (Status s = conv->attributes.CheckPositions(); !s.ok()) return s;
    return conv->finish.Read(given);
  }

  Status operator()(TensorView x, TensorView w, TensorView sums, std::optional<TensorView> x_zero,
                    std::optional<TensorView> w_zero, std::optional<TensorView> scale,
                    std::optional<TensorView> bias, TensorView out) const {
    Window window;
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    if (Status s = attributes.Resolve(x, out, &window); !s.ok()) return s;
    if (x.dim(x.ndim() - 1) != attributes.channels) {
      return ValueError("x has shape ", x.dims(), ", expected ", attributes.channels, " channels");
    }
    IntegerDepthwise call{};
    SetWindow(window, &call);
    IntegerProduct product{};
    const IntegerOperands operands{w, sums, x_zero, w_zero, scale, bias};
    if (Status s = product.Prepare(finish, x, operands, attributes.channels, window.taps(),
                                   call.quads() * kQuad, out);
        !s.ok())
      return s;
    if (out.size() == 0) return Status();
    call.channels = attributes.channels;
    call.x = static_cast<const std::uint8_t*>(x.raw_data());
    call.end = call.x + x.size();
    call.is_signed = x.Is<std::int8_t>();
    call.border = static_cast<std::uint8_t>(product.x_zero);
    call.w = product.w;
    call.start = product.start;
    call.w_zero = product.w_zero;
    call.finish = product.finish;
    const std::int64_t groups = DepthwiseGroups(call.channels);
    if (Status s = Workspace(Times(groups, ArrangedBytes(call.quads())), &call.arranged); !s.ok()) return s;
    const IntegerDepthwiseKernel& kernel = BestIntegerDepthwiseKernel();
    Status arranged =
        SerialFor(groups, ArrangedBytes(call.quads()) / kQuad, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t group = begin; group < end; ++group) kernel.arrange(call, group);
        });
    if (!arranged.ok()) return arranged;
    return ParallelFor(
        Times(x.dim(0), window.axes[0].output, window.axes[1].output),
        GrainOf(16 * kGrain, window.axes[2].output, call.channels, window.taps() + kFinishWork),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          for (std::int64_t line = begin; line < end && !pace.stopped(); ++line)
            RunLine(call, window, line, out, pace);
        });
  }

  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    IntegerProduct::Declare(sizes, attributes.channels);
    Window window;
    for (std::size_t i = 0; i < attributes.window.kernel.size(); ++i)
      window.axes[kMaxSpatial - attributes.window.kernel.size() + i].kernel = attributes.window.kernel[i];
    IntegerDepthwise call{};
    SetWindow(window, &call);
    sizes.Take(Times(DepthwiseGroups(attributes.channels), ArrangedBytes(call.quads())), 1);
    return true;
  }

 private:
  static void SetWindow(const Window& window, IntegerDepthwise* call) {
    const WindowAxis& columns = window.axes[2];
    const std::int64_t rows = window.taps() / columns.kernel;
    const std::int64_t members = rows == 1 ? columns.kernel : rows;  // of one segment of w
    const std::int64_t quads = PaddedDepth(members) / kQuad;
    call->input = columns.input;
    call->stride = columns.stride;
    call->columns = rows == 1 ? quads : columns.kernel;
    call->rows = rows == 1 ? 1 : quads;
    call->member = rows == 1 ? columns.dilation : 0;
    call->dilation = rows == 1 ? Times(kQuad, columns.dilation) : columns.dilation;
    if (call->columns == 1) call->dilation = call->stride;
    call->spacing = std::gcd(call->stride, call->dilation);
    for (std::int64_t i = 0; i < call->quads(); ++i) {
      const std::int64_t used = std::min(kQuad, members - i % quads * kQuad);
      call->taps[static_cast<std::size_t>(i)] = 0x01010101U >> (8 * (kQuad - used));
    }
  }

  static void RunLine(const IntegerDepthwise& call, const Window& window, std::int64_t line, TensorView out,
                      Pace& pace) {
    const auto& [depth, rows, columns] = window.axes;
    const std::int64_t oy = line % rows.output;
    const std::int64_t oz = line / rows.output % depth.output;
    const std::int64_t image = line / rows.output / depth.output;
    std::array<const std::uint8_t*, kMostQuads * kQuad> from;
    from.fill(nullptr);
    std::size_t row = 0;
    for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
      const std::int64_t z = depth.start(oz) + kz * depth.dilation;
      for (std::int64_t ky = 0; ky < rows.kernel; ++ky, ++row) {
        const std::int64_t y = rows.start(oy) + ky * rows.dilation;
        if (z < 0 || z >= depth.input || y < 0 || y >= rows.input) continue;
        from[row] = call.x + ((image * depth.input + z) * rows.input + y) * columns.input * call.channels;
      }
    }
    if (call.member != 0) std::fill_n(from.begin(), kQuad, from[0]);
    // The host is asked between runs of `most` positions.
    const std::int64_t work = Times(kDepthwiseGroup, kFinishWork + call.quads());
    const std::int64_t most = std::max<std::int64_t>(64, kPace / work);
    for (std::int64_t o = 0; o < columns.output; o += most) {
      const std::int64_t count = std::min(most, columns.output - o);
      for (std::int64_t group = 0; group < DepthwiseGroups(call.channels); ++group) {
        if (!pace.Spend(Times(count, work))) return;
        BestIntegerDepthwiseKernel().run(call, group, from.data(), columns.start(o), count,
                                         ElementAt(out, (line * columns.output + o) * call.channels));
      }
    }
  }
};

}  // namespace

std::span<const Kernel> PackedIntegerDepthwiseKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedIntegerDepthwise>(
          "x, w, sums, x_zero?, w_zero?, scale?, bias? -> out",
          "x, x_zero u8 i8; w, w_zero i8; sums i32; scale f32; bias i32 f32; out i32 f32 u8 i8",
          "channels, kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
          "SAME_UPPER, SAME_LOWER or VALID; activation, alpha, beta, zero, least, "
          "most as rewire.packed.matmul_integer",
          "each channel of x [N, spatial..., channels] with weights of its own, out and what it becomes as "
          "in "
          "rewire.packed.matmul_integer; the border is x_zero. w is packed from [channels, rows of the "
          "window, positions of a row] in a segment for each position of a row, or in one segment for a "
          "window of one row"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

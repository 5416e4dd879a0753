// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images with the channels last by windows of 3 x 3, and of volumes by such windows of several
// planes, in Winograd's form (winograd_transforms.h). A group of tiles is transformed, multiplied point by
// point, and transformed back (winograd_call.h); its size is such that all of this stays in the second cache.
// Several threads take a smaller group each, or, if the weights are large, share the three steps of one. With
// dilations, the positions that are a multiple of the dilation apart make up an image of their own, and tiles
// lie in these.
#include <algorithm>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/winograd/winograd_call.h"
#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"
#include "rewire/kernels/cpu/convolution/winograd/winograd_weights.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/own_places.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct PackedWinograd {
  static constexpr const char* kName = names::kPackedWinograd;
  ImageAttributes attributes;
  Activation activation;

  static Status Make(Attributes& given, PackedWinograd* conv) {
    conv->activation.Read(given);
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    const WindowAttributes& window = conv->attributes.window;
    // Whether the values of the last two axes, or of all if there are fewer, are this one.
    const auto last_two_are = [](const std::vector<std::int64_t>& values, std::int64_t value) {
      const auto two = std::min<std::ptrdiff_t>(2, std::ssize(values));
      return std::count(values.end() - two, values.end(), value) == two;
    };
    if (window.kernel.size() >= 2 && last_two_are(window.kernel, 3) && last_two_are(window.strides, 1))
      return Status();
    return ValueError("the window is ", ShapeView(window.kernel.data(), window.kernel.size()),
                      ", expected 3 by 3 without strides along the last two axes");
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias,
                    std::optional<TensorView> addend, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out).SameDType("w", w, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return TypeError("x has dtype ", DTypeName(x.dtype()), ", expected f32");
    Window window;
    if (Status s = attributes.Resolve(x, out, &window); !s.ok()) return s;
    if (Status s = CheckAdded(bias, addend, attributes.channels, out); !s.ok()) return s;
    const std::int64_t in_channels = x.dim(x.ndim() - 1);
    const std::int64_t packed[] = {kWinogradPoints, PackedColumns(attributes.channels),
                                   Times(window.axes[0].kernel, in_channels)};
    if (Status s = checks.Shape("w", w, ShapeView(packed, 3)).Take(); !s.ok()) return s;
    if (out.size() == 0) return Status();
    WinogradCall call = {};
    call.depth = &window.axes[0];
    call.rows = &window.axes[1];
    call.columns = &window.axes[2];
    call.in_channels = in_channels;
    call.out_channels = attributes.channels;
    call.x = x.data<float>();
    call.w = w.data<float>();
    call.bias = IsGiven(bias) ? bias->data<float>() : nullptr;
    call.addend = IsGiven(addend) ? addend->data<float>() : nullptr;
    call.out = out.data<float>();
    call.activation = activation;
    return Run(&call, x.dim(0));
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const auto axes = static_cast<std::int32_t>(attributes.window.kernel.size());
    const DLTensor *x = sizes.Tensor(0, 2 + axes), *out = sizes.Tensor(-1, 2 + axes);
    if (x == nullptr || out == nullptr) return false;
    // Such a call fails before it takes anything.
    if (!attributes.FitsRank(x->ndim) || !attributes.FitsRank(out->ndim)) return true;
    std::int64_t tiles = out->shape[0];
    for (std::int32_t axis = axes - 2; axis < axes; ++axis)
      tiles =
          Times(tiles, WinogradTilesAlong(out->shape[1 + axis], attributes.window.Axis(axis, axes).dilation));
    const bool volume = axes == 3;
    const Sizes most = SizesOf(LastDim(x), tiles, volume ? out->shape[1] : 1, volume ? x->shape[1] : 1);
    sizes.Take(most.scratch(), sizeof(float));
    return true;
  }

 private:
  // Output planes that are taken at once. The input planes between them are transformed once.
  static constexpr std::int64_t kPlanes = 4;

  static std::int64_t Quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

  // The axis of the planes, without its sizes.
  WindowAxis Planes() const {
    if (attributes.window.kernel.size() < 3) return {};
    WindowAxis axis = attributes.window.Axis(0, 3);
    axis.kernel = attributes.window.kernel[0];
    return axis;
  }
  // The tiles and planes that are transformed at once. They never shrink when there are more of either.
  struct Sizes {
    std::int64_t tiles, planes, slices, in_channels, out_channels;
    std::int64_t inputs() const { return Times(tiles, slices, in_channels); }
    std::int64_t products() const { return Times(tiles, planes, out_channels); }
    std::int64_t scratch() const {
      const std::int64_t of_points = Plus(Plus(inputs(), products()), 2 * kGap * OwnPlaces::kMost);
      return Plus(Times(kWinogradPoints, of_points), in_channels);
    }
  };
  Sizes SizesOf(std::int64_t in_channels, std::int64_t tiles, std::int64_t planes,
                std::int64_t slices) const {
    constexpr std::int64_t kFloats = 196608, kLeastOfImage = 8, kLeastOfVolume = 16, kMost = 64;
    const bool image = attributes.window.kernel.size() < 3;
    const std::int64_t most = image ? 1 : kPlanes;
    const std::int64_t most_slices = WinogradSlices(Planes(), most);
    const std::int64_t of_tile =
        Times(kWinogradPoints, Plus(Times(most_slices, in_channels), Times(most, attributes.channels)));
    // Weights of several planes are larger, and are worth more rows for each time that they are read.
    const std::int64_t group = std::clamp(kFloats / std::max<std::int64_t>(1, of_tile) / 8 * 8,
                                          image ? kLeastOfImage : kLeastOfVolume, kMost);
    return {std::min(tiles, group), std::min(planes, most), std::min(slices, most_slices), in_channels,
            attributes.channels};
  }
  // Points lie a little more than a power of 2 apart: a cache has few places for lines of such addresses.
  static constexpr std::int64_t kGap = 16;

  Status Run(WinogradCall* call, std::int64_t images) const {
    call->tile_rows = WinogradTilesAlong(call->rows->output, call->rows->dilation);
    call->tile_columns = WinogradTilesAlong(call->columns->output, call->columns->dilation);
    call->tiles = Times(images, call->tile_rows, call->tile_columns);
    const Sizes sizes = SizesOf(call->in_channels, call->tiles, call->depth->output, call->depth->input);
    call->group = sizes.tiles;
    call->planes = sizes.planes;
    call->input_step = sizes.inputs() + kGap;
    call->product_step = sizes.products() + kGap;
    float* scratch = nullptr;
    Status s = Workspace(sizes.scratch(), &scratch);
    if (!s.ok()) return s;
    if (s = FillAll(scratch, call->in_channels, 0.0F); !s.ok()) return s;
    call->zeros = scratch;
    call->inputs = scratch + call->in_channels;
    // Asked once: a host's pool may answer otherwise the next time.
    const std::int64_t threads = __rewire_kernel_api->thread_count();
    if (const std::int64_t own = OwnGroup(*call, threads); own != 0)
      return RunOwnGroups(*call, sizes, own, threads);
    call->products = call->inputs + kWinogradPoints * call->input_step;
    // As many as divide the points.
    constexpr std::int64_t kTasks = 12, kStageWork = 1572864;  // products, some 16 us
    const std::int64_t work = Times(call->group, call->planes, WorkOfTile(*call));
    const std::int64_t tasks = work < kStageWork || threads == 1 ? 1 : kTasks;
    const std::int64_t groups = Times(Quotient(call->tiles, call->group), call->chunks());
    return ParallelStages(3 * groups, tasks, [&](std::int64_t stage, std::int64_t task, Pace& pace) {
      const WinogradGroup group = WinogradGroupOf(*call, call->group, stage / 3);
      const auto from = [&](std::int64_t count, std::int64_t part) { return count * part / tasks; };
      const std::int64_t inputs = group.count * group.slices, outputs = group.count * group.planes;
      if (stage % 3 == 0) {
        TransformTiles(*call, group, from(inputs, task), from(inputs, task + 1), pace);
      } else if (stage % 3 == 1) {
        MultiplyPoints(*call, group, from(kWinogradPoints, task), from(kWinogradPoints, task + 1), pace);
      } else {
        FinishTiles(*call, group, from(outputs, task), from(outputs, task + 1), pace);
      }
    });
  }

  // The products of a tile, and what transforming it takes, in products.
  static std::int64_t WorkOfTile(const WinogradCall& call) {
    constexpr std::int64_t kTransform = 16;  // for each channel
    return Times(kWinogradPoints, Plus(Times(call.depth->kernel, call.in_channels, call.out_channels),
                                       Times(kTransform, Plus(call.in_channels, call.out_channels))));
  }

  // If each thread takes groups of its own, their tiles, else 0. Together these groups take the scratch
  // memory of one, and each thread gets as many of them as the others. Each thread then reads all weights,
  // which have to stay in its second cache.
  static std::int64_t OwnGroup(const WinogradCall& call, std::int64_t threads) {
    constexpr std::int64_t kMostWeights = 131072, kLeastTiles = 8;
    if (threads <= 1 || threads > OwnPlaces::kMost) return 0;
    if (Times(kWinogradPoints * call.depth->kernel, call.in_channels, call.out_channels) > kMostWeights)
      return 0;
    const std::int64_t most = call.group / threads, least = Quotient(kLeastTiles, call.planes);
    if (most < least) return 0;
    const std::int64_t own = Quotient(call.tiles, threads * Quotient(call.tiles, threads * most));
    // The smallest of the groups gives what those of one thread give.
    return own >= least && call.tiles / Quotient(call.tiles, own) >= kRowsInOneOrder ? own : 0;
  }

  static Status RunOwnGroups(const WinogradCall& call, Sizes sizes, std::int64_t own, std::int64_t threads) {
    sizes.tiles = own;
    const std::int64_t input_step = sizes.inputs() + kGap, product_step = sizes.products() + kGap;
    OwnPlaces places(threads);
    const std::int64_t groups = Times(Quotient(call.tiles, own), call.chunks());
    return ParallelFor(groups, GrainOf(16 * kGrain, own, call.planes, WorkOfTile(call)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         const OwnPlaces::Place place(&places);
                         WinogradCall mine = call;
                         mine.input_step = input_step;
                         mine.product_step = product_step;
                         mine.inputs =
                             call.inputs + place.number() * kWinogradPoints * (input_step + product_step);
                         mine.products = mine.inputs + kWinogradPoints * input_step;
                         for (std::int64_t number = begin; number < end && !pace.stopped(); ++number) {
                           const WinogradGroup group = WinogradGroupOf(call, own, number);
                           TransformTiles(mine, group, 0, group.count * group.slices, pace);
                           MultiplyPoints(mine, group, 0, kWinogradPoints, pace);
                           FinishTiles(mine, group, 0, group.count * group.planes, pace);
                         }
                       });
  }
};

}  // namespace

std::span<const Kernel> PackedWinogradKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedWinograd>(
          "x, w, bias?, addend? -> out over addend", "f32", kImageAttributes,
          "x [N, H, W, C] or [N, planes, H, W, C] by w of rewire.packed.winograd_weights, a convolution by "
          "3 x 3 windows, of any number of planes, in Winograd's form, plus "
          "bias [channels], plus addend of out's shape, then the activation; each sum may be off by some "
          "1e-6 "
          "of the largest term, and what is not finite spreads over its 4 x 4 outputs"),
      Describe<WinogradWeights>("w -> out", "w f32 bf16; out f32", "",
                                "w [M, C, 3, 3] or [M, C, planes, 3, 3] as 36 packed matrices [planes * C, "
                                "M], one for each point of a tile"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

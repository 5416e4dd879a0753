// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images with the channels last by windows of 3 x 3, in Winograd's form
// (winograd_transforms.h). A group of tiles is transformed, multiplied point by point, and transformed back;
// its size is such that all of this stays in the second cache. Several threads take a smaller group each, or,
// if the weights are large, share the three steps of one. With dilations, the positions that are a
// multiple of the dilation apart make up an image of their own, and tiles lie in these.
#include <algorithm>

#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/winograd_transforms.h"
#include "rewire/kernels/cpu/product/packed_rows.h"
#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/own_places.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct WinogradWeights {
  static constexpr const char kName[] = "rewire.packed.winograd_weights";
  Status operator()(TensorView w, TensorView out) const {
    Checks checks;
    checks.Dense("w", w).Dense("out", out).NoOverlap("out", out, "w", w);
    if (Status s = checks.Rank("w", w, 4).Take(); !s.ok()) return s;
    if (!w.Is<float>() && !w.Is<BFloat16>()) return WrongDType(Types<float, BFloat16>(), "w", w);
    if (!out.Is<float>()) return TypeError("out has dtype ", DTypeName(out.dtype()), ", expected f32");
    if (w.dim(2) != 3 || w.dim(3) != 3)
      return ValueError("w has shape ", w.dims(), ", expected [M, C, 3, 3]");
    const std::int64_t columns = w.dim(0), depth = w.dim(1);
    const std::int64_t expected[] = {kWinogradPoints, PackedColumns(columns), depth};
    if (Status s = CheckShape("out", out, ShapeView(expected, 3)); !s.ok()) return s;
    const std::int64_t step = Times(PackedColumns(columns), depth);
    // All of a panel's elements, those beyond the columns too.
    return ParallelFor(PanelCount(columns), GrainOf(kGrain, kPanelWidth, depth, 64),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t p = begin; p < end; ++p) PackPanel(w, p, step, out, pace);
                       });
  }

 private:
  static void PackPanel(TensorView w, std::int64_t panel, std::int64_t step, TensorView out, Pace& pace) {
    const std::int64_t columns = w.dim(0), depth = w.dim(1);
    const std::int64_t width = WidthOfPanel(panel, columns), used = UsedOfPanel(panel, columns);
    float* to = out.data<float>() + panel * kPanelWidth * depth;
    for (std::int64_t k = 0; k < depth; ++k) {
      if (!pace.Spend(Times(width, 2 * kWinogradPoints))) return;
      for (std::int64_t j = 0; j < width; ++j) {
        float points[kWinogradPoints] = {};
        const std::int64_t at = ((panel * kPanelWidth + j) * depth + k) * 9;
        float taps[9];
        if (j < used && w.Is<BFloat16>())
          std::transform(w.data<BFloat16>() + at, w.data<BFloat16>() + at + 9, taps,
                         [](BFloat16 tap) { return static_cast<float>(tap); });
        if (j < used) TransformWinogradWeights(w.Is<float>() ? w.data<float>() + at : taps, points);
        for (std::int64_t i = 0; i < kWinogradPoints; ++i) to[i * step + k * width + j] = points[i];
      }
    }
  }
};

struct PackedWinograd {
  static constexpr const char kName[] = "rewire.packed.winograd";
  ImageAttributes attributes;
  Activation activation;

  static Status Make(Attributes& given, PackedWinograd* conv) {
    conv->activation.Read(given);
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    const WindowAttributes& window = conv->attributes.window;
    const auto all_one = [](const std::vector<std::int64_t>& values) {
      return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value == 1; });
    };
    if (window.kernel == std::vector<std::int64_t>{3, 3} && all_one(window.strides)) return Status();
    return ValueError("the window is ", ShapeView(window.kernel.data(), window.kernel.size()),
                      ", expected 3 by 3 without strides");
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
    const std::int64_t packed[] = {kWinogradPoints, PackedColumns(attributes.channels), x.dim(x.ndim() - 1)};
    if (Status s = checks.Shape("w", w, ShapeView(packed, 3)).Take(); !s.ok()) return s;
    if (out.size() == 0) return Status();
    Call call = {};
    call.rows = &window.axes[1];
    call.columns = &window.axes[2];
    call.in_channels = x.dim(3);
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
    const DLTensor *w = sizes.Tensor(1, 3), *out = sizes.Tensor(-1, 4);
    if (w == nullptr || out == nullptr) return false;
    const std::int64_t tiles = Times(out->shape[0], TilesAlong(out->shape[1], DilationOf(0)),
                                     TilesAlong(out->shape[2], DilationOf(1)));
    sizes.Take(Scratch(LastDim(w), attributes.channels, tiles), sizeof(float));
    return true;
  }

 private:
  struct Call {
    const WindowAxis *rows, *columns;
    std::int64_t in_channels, out_channels;
    const float *x, *w, *bias, *addend;
    float* out;
    Activation activation;
    std::int64_t tile_rows, tile_columns, tiles;  // the last: of all images
    std::int64_t group;                           // tiles
    float *inputs, *products;                     // [points, tiles, channels], with gaps
    std::int64_t input_step, product_step;        // from a point to the next
    const float* zeros;                           // [in_channels]
  };

  static std::int64_t Quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
  static std::int64_t TilesOf(std::int64_t outputs) { return Quotient(outputs, kWinogradOutputs); }
  // With a dilation, for as many images as there are outputs of different remainders.
  static std::int64_t TilesAlong(std::int64_t outputs, std::int64_t dilation) {
    return Times(std::min(outputs, dilation), TilesOf(Quotient(outputs, dilation)));
  }
  std::int64_t DilationOf(std::size_t axis) const {
    const std::vector<std::int64_t>& dilations = attributes.window.dilations;
    return axis < dilations.size() ? std::max<std::int64_t>(1, dilations[axis]) : 1;
  }
  // The tiles that are transformed at once. It never shrinks when there are more tiles.
  static std::int64_t GroupOf(std::int64_t in_channels, std::int64_t out_channels, std::int64_t tiles) {
    constexpr std::int64_t kFloats = 196608;
    const std::int64_t of_tile = Times(kWinogradPoints, Plus(in_channels, out_channels));
    return std::min(tiles,
                    std::clamp<std::int64_t>(kFloats / std::max<std::int64_t>(1, of_tile) / 8 * 8, 8, 64));
  }
  // Points lie a little more than a power of 2 apart: a cache has few places for lines of such addresses.
  static constexpr std::int64_t kGap = 16;
  static std::int64_t Scratch(std::int64_t in_channels, std::int64_t out_channels, std::int64_t tiles) {
    const std::int64_t group = GroupOf(in_channels, out_channels, tiles);
    const std::int64_t of_points =
        Plus(Times(group, Plus(in_channels, out_channels)), 2 * kGap * OwnPlaces::kMost);
    return Plus(Times(kWinogradPoints, of_points), in_channels);
  }

  static Status Run(Call* call, std::int64_t images) {
    call->tile_rows = TilesAlong(call->rows->output, call->rows->dilation);
    call->tile_columns = TilesAlong(call->columns->output, call->columns->dilation);
    call->tiles = Times(images, call->tile_rows, call->tile_columns);
    call->group = GroupOf(call->in_channels, call->out_channels, call->tiles);
    call->input_step = Times(call->group, call->in_channels) + kGap;
    call->product_step = Times(call->group, call->out_channels) + kGap;
    float* scratch = nullptr;
    Status s = Workspace(Scratch(call->in_channels, call->out_channels, call->tiles), &scratch);
    if (!s.ok()) return s;
    if (s = FillAll(scratch, call->in_channels, 0.0F); !s.ok()) return s;
    call->zeros = scratch;
    call->inputs = scratch + call->in_channels;
    // Asked once: a host's pool may answer otherwise the next time.
    const std::int64_t threads = __rewire_kernel_api->thread_count();
    if (const std::int64_t own = OwnGroup(*call, threads); own != 0) return RunOwnGroups(*call, own, threads);
    call->products = call->inputs + kWinogradPoints * call->input_step;
    // As many as divide the points.
    constexpr std::int64_t kTasks = 12, kStageWork = 1572864;  // products, some 16 us
    const std::int64_t work = Times(call->group, WorkOfTile(*call));
    const std::int64_t tasks = work < kStageWork || threads == 1 ? 1 : kTasks;
    const std::int64_t groups = (call->tiles + call->group - 1) / call->group;
    return ParallelStages(3 * groups, tasks, [&](std::int64_t stage, std::int64_t task, Pace& pace) {
      const std::int64_t first = stage / 3 * call->group;
      const std::int64_t count = std::min(call->group, call->tiles - first);
      const std::int64_t begin = count * task / tasks, end = count * (task + 1) / tasks;
      if (stage % 3 == 0) {
        TransformTiles(*call, first, begin, end, pace);
      } else if (stage % 3 == 1) {
        MultiplyPoints(*call, count, kWinogradPoints * task / tasks, kWinogradPoints * (task + 1) / tasks,
                       pace);
      } else {
        FinishTiles(*call, first, begin, end, pace);
      }
    });
  }

  // The products of a tile, and what transforming it takes, in products.
  static std::int64_t WorkOfTile(const Call& call) {
    constexpr std::int64_t kTransform = 16;  // for each channel
    return Times(kWinogradPoints, Plus(Times(call.in_channels, call.out_channels),
                                       Times(kTransform, Plus(call.in_channels, call.out_channels))));
  }

  // If each thread takes groups of its own, their tiles, else 0. Together these groups take the scratch
  // memory of one, and each thread gets as many of them as the others. Each thread then reads all weights,
  // which have to stay in its second cache.
  static std::int64_t OwnGroup(const Call& call, std::int64_t threads) {
    constexpr std::int64_t kMostWeights = 131072, kLeastTiles = 8;
    if (threads <= 1 || threads > OwnPlaces::kMost) return 0;
    if (Times(kWinogradPoints, call.in_channels, call.out_channels) > kMostWeights) return 0;
    const std::int64_t most = call.group / threads;
    if (most < kLeastTiles) return 0;
    const std::int64_t own = Quotient(call.tiles, threads * Quotient(call.tiles, threads * most));
    return own >= kLeastTiles ? own : 0;
  }

  static Status RunOwnGroups(const Call& call, std::int64_t own, std::int64_t threads) {
    const std::int64_t input_step = own * call.in_channels + kGap;
    const std::int64_t product_step = own * call.out_channels + kGap;
    OwnPlaces places(threads);
    const std::int64_t groups = Quotient(call.tiles, own);
    return ParallelFor(groups, GrainOf(16 * kGrain, own, WorkOfTile(call)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         const OwnPlaces::Place place(&places);
                         Call mine = call;
                         mine.input_step = input_step;
                         mine.product_step = product_step;
                         mine.inputs =
                             call.inputs + place.number() * kWinogradPoints * (input_step + product_step);
                         mine.products = mine.inputs + kWinogradPoints * input_step;
                         for (std::int64_t group = begin; group < end && !pace.stopped(); ++group) {
                           const std::int64_t first = group * own;
                           const std::int64_t count = std::min(own, call.tiles - first);
                           TransformTiles(mine, first, 0, count, pace);
                           MultiplyPoints(mine, count, 0, kWinogradPoints, pace);
                           FinishTiles(mine, first, 0, count, pace);
                         }
                       });
  }

  // Where a tile lies: the image, and its first output.
  struct Place {
    std::int64_t image, row, column;
  };
  static Place PlaceOf(const Call& call, std::int64_t tile) {
    return {tile / call.tile_columns / call.tile_rows,
            FirstOutput(*call.rows, tile / call.tile_columns % call.tile_rows),
            FirstOutput(*call.columns, tile % call.tile_columns)};
  }
  static std::int64_t FirstOutput(const WindowAxis& axis, std::int64_t tile) {
    const std::int64_t tiles = TilesOf(Quotient(axis.output, axis.dilation));  // of one remainder
    return tile / tiles + tile % tiles * kWinogradOutputs * axis.dilation;
  }
  // How many of a tile's outputs from `first` on lie inside the image.
  static std::int64_t OutputsFrom(const WindowAxis& axis, std::int64_t first) {
    if (first >= axis.output) return 0;
    return std::min(kWinogradOutputs, Quotient(axis.output - first, axis.dilation));
  }

  // Tiles [begin, end) of the group that begins with tile `first`.
  static void TransformTiles(const Call& call, std::int64_t first, std::int64_t begin, std::int64_t end,
                             Pace& pace) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (!pace.Spend(8 * kWinogradPoints + 4 * call.in_channels)) return;
      TransformTile(call, first, i);
    }
  }
  static void FinishTiles(const Call& call, std::int64_t first, std::int64_t begin, std::int64_t end,
                          Pace& pace) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (!pace.Spend(8 * kWinogradPoints + 4 * call.out_channels)) return;
      FinishTile(call, first, i);
    }
  }

  // Tile `i` of the group that begins with tile `first`.
  static void TransformTile(const Call& call, std::int64_t first, std::int64_t i) {
    const Place place = PlaceOf(call, first + i);
    WinogradInput tile;
    tile.channels = call.in_channels;
    tile.to = call.inputs + i * call.in_channels;
    tile.step = call.input_step;
    const float** point = tile.from;
    for (std::int64_t dy = 0; dy < kWinogradInputs; ++dy) {
      const std::int64_t y = place.row - call.rows->before + dy * call.rows->dilation;
      const bool inside = y >= 0 && y < call.rows->input;
      const std::int64_t line = (place.image * call.rows->input + y) * call.columns->input;
      for (std::int64_t dx = 0; dx < kWinogradInputs; ++dx) {
        const std::int64_t x = place.column - call.columns->before + dx * call.columns->dilation;
        *point++ =
            inside && x >= 0 && x < call.columns->input ? call.x + (line + x) * call.in_channels : call.zeros;
      }
    }
    BestWinogradTransforms().input(tile);
  }

  // Points [begin, end) of the group's `count` tiles.
  static void MultiplyPoints(const Call& call, std::int64_t count, std::int64_t begin, std::int64_t end,
                             Pace& pace) {
    const std::int64_t of_point = PackedColumns(call.out_channels) * call.in_channels;
    const std::int64_t panels = PanelCount(call.out_channels);
    for (std::int64_t point = begin; point < end; ++point) {
      const RowsByPanels product = {call.inputs + point * call.input_step,
                                    count,
                                    call.in_channels,
                                    call.w + point * of_point,
                                    call.out_channels,
                                    nullptr,
                                    nullptr,
                                    Activation(),
                                    call.products + point * call.product_step};
      if (!MultiplyPanels(product, 0, panels, pace)) return;
    }
  }

  static void FinishTile(const Call& call, std::int64_t first, std::int64_t i) {
    const Place place = PlaceOf(call, first + i);
    WinogradOutput tile;
    tile.from = call.products + i * call.out_channels;
    tile.step = call.product_step;
    tile.channels = call.out_channels;
    tile.bias = call.bias;
    tile.rows = OutputsFrom(*call.rows, place.row);
    tile.columns = OutputsFrom(*call.columns, place.column);
    if (tile.rows == 0 || tile.columns == 0) return;
    tile.row_step = call.rows->dilation * call.columns->output * call.out_channels;
    tile.column_step = call.columns->dilation * call.out_channels;
    const std::int64_t at =
        ((place.image * call.rows->output + place.row) * call.columns->output + place.column) *
        call.out_channels;
    tile.addend = call.addend == nullptr ? nullptr : call.addend + at;
    tile.out = call.out + at;
    tile.activation = call.activation;
    BestWinogradTransforms().output(tile);
  }
};

}  // namespace

std::span<const Kernel> PackedWinogradKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedWinograd>(
          "x, w, bias?, addend? -> out over addend", "f32", kImageAttributes,
          "x [N, H, W, C] by w of rewire.packed.winograd_weights, a 3 x 3 convolution in Winograd's form, "
          "plus "
          "bias [channels], plus addend of out's shape, then the activation; each sum may be off by some "
          "1e-6 "
          "of the largest term, and what is not finite spreads over its 4 x 4 outputs"),
      Describe<WinogradWeights>("w -> out", "w f32 bf16; out f32", "",
                                "w [M, C, 3, 3] as 36 packed matrices [C, M], one for each point of a tile"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

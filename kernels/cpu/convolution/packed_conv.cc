// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images with the channels last and packed weights (panels.h). Weights of bf16 are pairs of
// channels: the image is then rounded to bf16 first.
#include <algorithm>
#include <array>
#include <cstring>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/image_call.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/tile_conv.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/gemm_packed_tiles.h"
#include "rewire/kernels/cpu/product/pack_pairs.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/cache.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// The window at a run of output positions of one line, as the segments of a PanelTile.
class Segments {
 public:
  // `zeros` has as many floats as a row of the window.
  Segments(const ImageCall& call, const float* zeros)
      : call_(call),
        zeros_(zeros),
        met_by_any_(RowsBetween(call.window.axes[0].output - 1, call.window.axes[1].output - 1, 0, 0)) {}

  // Output positions [o, o + tile->count) of a line. Rows of the window before and behind the image are left
  // out: returns the units of the panel that are skipped. With `all`, only those that no line meets are: the
  // first tiles by a panel fetch the next one. Apart from the loop that calls it, so that both keep their
  // state in registers.
  [[gnu::noinline]] std::int64_t Gather(std::int64_t line, std::int64_t o, bool all, PanelTile* tile) {
    const auto& [depth, rows, columns] = call_.window.axes;
    if (line != line_) MoveTo(line);
    const Rows& met = all ? met_by_any_ : met_;
    // A row of the window is one piece if all of its columns lie inside the image.
    const std::int64_t begin = columns.start(o);
    const std::int64_t reached = (tile->count - 1) * columns.stride + columns.kernel;
    const bool inside = columns.dilation == 1 && begin >= 0 && begin + reached <= columns.input;
    const bool copied = columns.dilation == 1 && !inside && call_.in_channels <= kMostChannels &&
                        Times(depth.kernel, rows.kernel, reached, call_.in_channels) <= kMostCopied;
    const bool whole = inside || copied;
    const std::int64_t pieces = whole ? 1 : columns.kernel;
    tile->depth = (whole ? columns.kernel : 1) * call_.in_channels;
    const std::int64_t step = columns.stride * call_.in_channels;
    const float** to = pointers_.data();
    float* copy = copy_.data();
    std::int64_t kz = met.plane, ky = met.row;
    for (std::int64_t left = met.count; left > 0; --left, ++ky) {
      if (ky == rows.kernel) {
        ky = 0;
        ++kz;
      }
      const std::int64_t z = depth.start(oz_) + kz * depth.dilation;
      const std::int64_t y = rows.start(oy_) + ky * rows.dilation;
      if (z < 0 || z >= depth.input || y < 0 || y >= rows.input) {
        to = std::fill_n(to, pieces * tile->count, zeros_);
        continue;
      }
      const std::int64_t line_at = (image_ * depth.input + z) * rows.input + y - call_.first_line;
      const float* row = call_.x + line_at * columns.input * call_.in_channels;
      if (whole) {
        const float* from = inside ? row + begin * call_.in_channels : copy;
        if (copied) copy = Copy(row, begin, reached, copy);
        for (int i = 0; i < tile->count; ++i, from += step) *to++ = from;
        continue;
      }
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        std::int64_t at = begin + piece * columns.dilation;
        for (int i = 0; i < tile->count; ++i, at += columns.stride)
          *to++ = at >= 0 && at < columns.input ? row + at * call_.in_channels : zeros_;
      }
    }
    tile->segments = met.count * pieces;
    tile->rows = pointers_.data();
    return (met.plane * rows.kernel + met.row) * columns.kernel * call_.in_channels;
  }

 private:
  // Rows of the window, plane by plane: so many from one on.
  struct Rows {
    std::int64_t plane, row, count;
  };
  // From the first one that lies in the image at output plane z0 and line y0 to the last one at z1 and y1.
  Rows RowsBetween(std::int64_t z0, std::int64_t y0, std::int64_t z1, std::int64_t y1) const {
    const auto& [depth, rows, columns] = call_.window.axes;
    const auto from = [](const WindowAxis& axis, std::int64_t o) {
      std::int64_t first, last;
      axis.Inside(o, &first, &last);
      return std::min(first, axis.kernel - 1);
    };
    const auto to = [](const WindowAxis& axis, std::int64_t o) {
      std::int64_t first, last;
      axis.Inside(o, &first, &last);
      return last;
    };
    const std::int64_t plane = from(depth, z0), row = from(rows, y0);
    const std::int64_t last = (to(depth, z1) - 1) * rows.kernel + to(rows, y1);
    return {plane, row, std::max<std::int64_t>(0, last - plane * rows.kernel - row)};
  }
  void MoveTo(std::int64_t line) {
    const auto &depth = call_.window.axes[0], &rows = call_.window.axes[1];
    line_ = line;
    oy_ = line % rows.output;
    oz_ = line / rows.output % depth.output;
    image_ = line / rows.output / depth.output;
    met_ = RowsBetween(oz_, oy_, oz_, oy_);
  }

  // Units that are copied where a window leaves the image, so that its rows are pieces too: with few
  // channels, multiplying position by position takes twice as long.
  static constexpr std::int64_t kMostCopied = 1024, kMostChannels = 16;

  // The positions [begin, begin + count) of a row, with zeros where there are none. Returns what is behind.
  float* Copy(const float* row, std::int64_t begin, std::int64_t count, float* to) const {
    const std::int64_t channels = call_.in_channels, input = call_.window.axes[2].input;
    const std::int64_t first = std::clamp<std::int64_t>(-begin, 0, count);
    const std::int64_t last = std::clamp<std::int64_t>(input - begin, first, count);
    std::memset(to, 0, static_cast<std::size_t>(first * channels) * sizeof(float));
    std::memcpy(to + first * channels, row + (begin + first) * channels,
                static_cast<std::size_t>((last - first) * channels) * sizeof(float));
    std::memset(to + last * channels, 0, static_cast<std::size_t>((count - last) * channels) * sizeof(float));
    return to + count * channels;
  }

  const ImageCall& call_;
  const float* zeros_;
  Rows met_by_any_;
  std::int64_t line_ = -1, oy_ = 0, oz_ = 0, image_ = 0;
  Rows met_ = {};  // by that line
  std::array<const float*, kMostTaps * kMostPanelRows> pointers_;
  std::array<float, kMostCopied> copy_;
};

struct PackedConv {
  static constexpr const char* kName = names::kPackedConv;
  ImageAttributes attributes;
  Activation activation;

  static Status Make(Attributes& given, PackedConv* conv) {
    conv->activation.Read(given);
    return conv->attributes.Read(given);
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias,
                    std::optional<TensorView> addend, TensorView out) const {
    ImageCall call;
    if (Status s = ResolveImageCall(attributes, x, w, bias, addend, out, &call); !s.ok()) return s;
    const std::int64_t units = call.pairs() ? PairsOf(call.in_channels) : call.in_channels;
    const std::int64_t depth = Times(units, call.window.taps());
    const std::int64_t packed[] = {PackedColumns(attributes.channels),
                                   call.pairs() ? Times(2, depth) : depth};
    if (Status s = CheckShape("w", w, ShapeView(packed, 2)); !s.ok()) return s;
    if (out.size() == 0) return Status();
    const std::int64_t positions = Times(call.images, call.window.inputs());
    if (IsPointwise(call.window)) {
      RowsByPanels product = {call.x,    positions,   call.in_channels, call.w,  attributes.channels,
                              call.bias, call.addend, activation,       call.out};
      product.rounded = call.rounded;
      if (call.pairs() && !call.x_rounded) return MultiplyRoundedRows(product);
      product.depth = units;
      product.unit = call.unit;
      return call.pairs() ? MultiplyPairRows(product) : MultiplyRows(product);
    }
    if (call.pairs() && TilesAreWorthIt(out.size() / attributes.channels, depth, attributes.channels)) {
      if (const TileImage image = PairsImage(call); image.Serves())
        return ConvolveByTiles(call, image, activation);
    }
    const std::int64_t row = Times(units, attributes.LargestKernel());
    float* zeros = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, row), &zeros); !s.ok()) return s;
    if (Status s = FillAll(zeros, row, 0.0F); !s.ok()) return s;
    if (call.pairs() && !call.x_rounded) return RunRounded(call, depth, zeros);
    call.in_channels = units;
    return Run(call, depth, 0, call.lines(), zeros);
  }
  // The workspace holds a row that stands for those outside of the image, and the lines that are rounded at
  // once.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 3), *w = sizes.Tensor(1);
    if (x == nullptr || w == nullptr) return false;
    // Such a call fails before it takes anything.
    if (!attributes.FitsRank(x->ndim)) return true;
    const bool pairs = SameDType(w->dtype, DTypeOf<BFloat16>());
    const bool rounds = pairs && !SameDType(x->dtype, DTypeOf<BFloat16>());
    const std::int64_t channels = LastDim(x);
    const std::int64_t positions = SizeOf(x) / std::max<std::int64_t>(1, channels);
    const std::int64_t units = pairs ? PairsOf(channels) : channels;
    if (attributes.IsPointwise()) {
      if (rounds) DeclareRoundedRows(sizes, positions, channels);
      if (pairs && !rounds) DeclarePairRows(sizes, positions, units);
      return true;
    }
    sizes.Take(std::max<std::int64_t>(1, Times(units, attributes.LargestKernel())), sizeof(float));
    if (pairs) DeclareTileImage(sizes, attributes, x, Times(units, kUnitBytes), false);
    if (!rounds) return true;
    const std::int64_t longest = Times(SpatialDim(x), units);
    std::int64_t rounded = Times(positions, units);
    if (attributes.window.kernel.size() < kMaxSpatial)
      rounded = std::min(rounded, Plus(4 * kRoundedUnits, Times(attributes.MostReach(), longest)));
    sizes.Take(std::max<std::int64_t>(1, rounded), sizeof(float));
    return true;
  }

 private:
  // Units of the image that are rounded at once, with one thread: so many stay in the second cache.
  static constexpr std::int64_t kRoundedUnits = 65536;

  // The largest size of x along a spatial axis.
  static std::int64_t SpatialDim(const DLTensor* x) {
    return *std::max_element(x->shape + 1, x->shape + x->ndim - 1);
  }

  // Rounds the lines of the image that a part of the output reads, and runs that part.
  Status RunRounded(const ImageCall& call, std::int64_t depth, const float* zeros) const {
    const auto &planes = call.window.axes[0], &rows = call.window.axes[1], &columns = call.window.axes[2];
    const std::int64_t most = __rewire_kernel_api->thread_count() == 1 ? kRoundedUnits : 4 * kRoundedUnits;
    const std::int64_t units = PairsOf(call.in_channels), line = Times(columns.input, units);
    const std::int64_t all = Times(call.images, planes.input, rows.input);
    const bool at_once = !IsPoint(planes) || Times(all, line) <= most;
    const std::int64_t part =
        at_once ? call.lines() : std::clamp<std::int64_t>(most / Times(line, rows.stride), 1, rows.output);
    // The lines of an image that its output line `o` reads.
    const auto begin_of = [&](std::int64_t o) {
      return std::clamp<std::int64_t>(rows.start(o), 0, rows.input);
    };
    const auto end_of = [&](std::int64_t o) {
      return std::clamp<std::int64_t>(rows.start(o) + rows.reach(), 0, rows.input);
    };
    const std::int64_t longest =
        at_once ? all : std::min(rows.input, Plus(Times(part - 1, rows.stride), rows.reach()));
    float* rounded = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, Times(longest, line)), &rounded); !s.ok()) return s;
    ImageCall of_part = call;
    of_part.x = rounded;
    of_part.in_channels = units;
    for (std::int64_t first = 0, last; first < call.lines(); first = last) {
      // A part ends with its image.
      const std::int64_t o = first % rows.output;
      last = at_once ? call.lines() : first + std::min(part, rows.output - o);
      std::int64_t count = all;
      if (!at_once) {
        of_part.first_line = first / rows.output * rows.input + begin_of(o);
        count = std::max<std::int64_t>(0, end_of(o + last - first - 1) - begin_of(o));
      }
      const std::int64_t step = columns.input * call.in_channels;
      if (Status s = RoundAllRows(call.x + of_part.first_line * step, Times(count, columns.input),
                                  call.in_channels, rounded);
          !s.ok())
        return s;
      if (Status s = Run(of_part, depth, first, last, zeros); !s.ok()) return s;
    }
    return Status();
  }

  // Lines [from, to) of the output. A block of lines, whose windows stay in the second cache, by one panel
  // after the other.
  Status Run(const ImageCall& call, std::int64_t depth, std::int64_t from, std::int64_t to,
             const float* zeros) const {
    const std::int64_t floats = SecondCacheBytes() / 32 * 3;  // of the image
    const WindowAxis& columns = call.window.axes[2];
    const PanelKernel& kernel = BestPanelKernel(call.unit);
    const std::int64_t at_once = PanelsAtOnce(kernel, depth);
    const std::int64_t steps = (PanelCount(call.out_channels) + at_once - 1) / at_once;
    const std::int64_t line = columns.input * call.in_channels * call.window.axes[1].stride;
    const std::int64_t block = RowsOfBlock(to - from, 1, floats / std::max<std::int64_t>(1, line), steps);
    const std::int64_t blocks = (to - from + block - 1) / block;
    const LineParts parts(Times(blocks, steps), columns.output, at_once > 1 ? kernel.wide_rows : kernel.rows);
    return ParallelFor(
        Times(blocks, parts.count(), steps),
        GrainOf(16 * kGrain, block, columns.output / parts.count(), depth, at_once * kPanelWidth),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          Segments segments(call, zeros);
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t part = task / steps % parts.count();
            const std::int64_t first = from + task / steps / parts.count() * block;
            const std::int64_t last = std::min(to, first + block);
            std::int64_t number = 0;
            for (std::int64_t i = first; i < last && !pace.stopped(); ++i)
              RunLine(call, depth, parts.Part(i, part), task % steps * at_once, &number, segments, pace);
          }
        });
  }

  // By one panel, or by two if a tile should take two. `number` counts the tiles by them.
  void RunLine(const ImageCall& call, std::int64_t depth, const OfLine& of_line, std::int64_t panel,
               std::int64_t* number, Segments& segments, Pace& pace) const {
    const PanelKernel& kernel = BestPanelKernel(call.unit);
    const std::int64_t first = panel * kPanelWidth;
    const std::int64_t outputs = call.window.axes[2].output;
    const std::int64_t width = PanelsAtOnce(kernel, depth) * kPanelWidth;
    PanelTile tile;
    tile.panel = UnitsAt(call.w, first * depth, call.unit);
    tile.panel_depth = depth;
    tile.columns = std::min(call.out_channels - first, width);
    const int most = MakeWide(kernel, &tile);
    tile.bias = call.bias == nullptr ? nullptr : call.bias + first;
    tile.step = call.out_channels;
    tile.activation = activation;
    for (std::int64_t o = of_line.begin; o < of_line.end; o += tile.count) {
      tile.count = RowsOfTile(of_line.end - o, most);
      if (!pace.Spend(ProductsOf(tile.count, depth))) return;
      tile.skipped = segments.Gather(of_line.line, o, *number < 2, &tile);
      tile.ahead = AheadOf((*number)++, width * depth);
      const std::int64_t at = (of_line.line * outputs + o) * call.out_channels + first;
      tile.addend = call.addend.From(at);
      if (call.rounded != nullptr) tile.rounded = call.rounded + at;
      tile.out = call.out + at;
      kernel.run(tile);
    }
  }
};

}  // namespace

std::span<const Kernel> PackedConvKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedConv>(
          "x, w, bias?, addend? -> out over addend",
          "x f32 bf16; w f32 bf16 f16; addend, out f32 bf16; bias f32", kImageAttributes,
          "as rewire.conv, the channels last: x [N, spatial..., C], w packed from [channels, C, "
          "kernel...], plus bias [channels], plus addend of out's shape, then the activation; for w bf16 x "
          "is "
          "rounded to bf16, and the sums are f32; w f16 becomes f32 where it is multiplied"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

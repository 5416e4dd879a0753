// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images of 8-bit integers with the channels last and packed weights (integer_panels.h).
#include <algorithm>
#include <array>
#include <cstring>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/tile_conv.h"
#include "rewire/kernels/cpu/product/gemm_packed_integers.h"
#include "rewire/kernels/cpu/product/packed_integer_call.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// An image as it lies in memory, with all that windows reach.
struct Image {
  const std::uint8_t* data;
  std::int64_t sizes[kMaxSpatial];
  std::int64_t channels;
};

// Reached tells how far windows reach on an axis, from `before` its first position on.
std::int64_t Reached(const WindowAxis& axis) {
  return std::max(axis.before + axis.input, (axis.output - 1) * axis.stride + axis.reach());
}

// The image with its border, in which x_zero stands, as unsigned bytes.
Status CopyWithBorder(TensorView x, const Window& window, std::int32_t x_zero, const Image& image,
                      std::uint8_t* to) {
  const WindowAxis &depth = window.axes[0], &rows = window.axes[1], &columns = window.axes[2];
  const auto* from = static_cast<const std::uint8_t*>(x.raw_data());
  const bool is_signed = x.Is<std::int8_t>();
  const std::int64_t line = Times(image.sizes[2], image.channels);
  const std::int64_t input = columns.input * image.channels;
  const std::int64_t before = columns.before * image.channels;
  const std::int64_t lines = Times(x.dim(0), image.sizes[0], image.sizes[1]);
  return ParallelFor(lines, GrainOf(2 * kGrain, line), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t y = i % image.sizes[1] - rows.before;
      const std::int64_t z = i / image.sizes[1] % image.sizes[0] - depth.before;
      const std::int64_t n = i / image.sizes[1] / image.sizes[0];
      std::uint8_t* line_to = to + i * line;
      const bool inside = y >= 0 && y < rows.input && z >= 0 && z < depth.input;
      const std::int64_t used = inside ? input : 0;
      const std::int64_t left = inside ? before : 0;
      const auto border = static_cast<std::uint8_t>(x_zero);
      const std::int64_t at = ((n * depth.input + z) * rows.input + y) * input;
      const auto copy = [&](std::int64_t first, std::int64_t last) {
        CopyUnsigned(from + at + first, last - first, is_signed, line_to + left + first);
      };
      if (!pace.Fill(line_to, left, border) || !pace.For(used, 1, copy) ||
          !pace.Fill(line_to + left + used, line - left - used, border) || !pace.Spend(4))
        return;
    }
  });
}

// By tiles. `whole`: the rows of the window are one piece.
Status ConvolveIntegersByTiles(const IntegerProduct& product, const Window& window, bool whole,
                               const TileImage& image, TensorView x, TensorView out) {
  const std::int64_t channels = x.dim(x.ndim() - 1);
  const bool is_signed = x.Is<std::int8_t>();
  const auto* data = static_cast<const std::byte*>(x.raw_data());
  const std::int64_t padding = whole ? 0 : PaddedDepth(channels) - channels;
  const auto flip = static_cast<std::byte>(is_signed ? 0x80 : 0);
  const auto write = [&](std::int64_t n, std::int64_t y, const TileImage& part, std::byte* to) {
    const WindowAxis &rows = window.axes[1], &columns = window.axes[2];
    const std::byte* from = data + (n * rows.input + y) * columns.input * channels;
    // A position with zeros behind it is written alone.
    const auto each = [&](std::int64_t count, std::byte* at, const auto& put) {
      if (padding == 0) {
        put(0, count, at);
        return at + count * channels;
      }
      for (std::int64_t i = 0; i < count; ++i, at += channels + padding) {
        put(i, 1, at);
        std::fill_n(at + channels, padding, std::byte{0});
      }
      return at;
    };
    part.WriteLine(
        y >= 0 && y < rows.input, to,
        [&](std::int64_t position, std::int64_t step, std::int64_t of_rows, std::int64_t count,
            std::byte* at) {
          CopyToLines({from + position * channels, step * channels, count * channels, of_rows, at,
                       part.row_bytes(), flip});
        },
        [&](std::int64_t position, std::int64_t count, std::byte* at) {
          return each(count, at, [&](std::int64_t i, std::int64_t put, std::byte* there) {
            CopyUnsigned(reinterpret_cast<const std::uint8_t*>(from + (position + i) * channels),
                         put * channels, is_signed, reinterpret_cast<std::uint8_t*>(there));
          });
        },
        [&](std::int64_t count, std::byte* at) {
          return each(count, at, [&](std::int64_t, std::int64_t put, std::byte* there) {
            std::fill_n(there, put * channels, static_cast<std::byte>(product.x_zero));
          });
        });
  };
  const auto finish_of = [&](std::int64_t panel) { return TiledIntegersFinish(product, panel, out); };
  return WindowProduct(TileUnit::kBytes, image, window, x.dim(0), product.w, product.columns, write,
                       finish_of)
      .Run();
}

struct PackedIntegerConv {
  static constexpr const char* kName = names::kPackedConvInteger;
  ImageAttributes attributes;
  IntegerFinishAttributes finish;

  static Status Make(Attributes& given, PackedIntegerConv* conv) {
    if (Status s = conv->attributes.Read(given); !s.ok()) return s;
    return conv->finish.Read(given);
  }

  Status operator()(TensorView x, TensorView w, TensorView sums, std::optional<TensorView> x_zero,
                    std::optional<TensorView> w_zero, std::optional<TensorView> scale,
                    std::optional<TensorView> bias, TensorView out) const {
    Window window;
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    if (Status s = attributes.Resolve(x, out, &window); !s.ok()) return s;
    const std::int64_t channels = x.dim(x.ndim() - 1);
    // Rows of the window are one piece where its taps lie side by side.
    const bool whole = window.axes[2].dilation == 1;
    const std::int64_t segments = whole ? window.taps() / window.axes[2].kernel : window.taps();
    const std::int64_t depth = Times(window.taps(), channels) / segments;
    IntegerProduct product{};
    const IntegerOperands operands{w, sums, x_zero, w_zero, scale, bias};
    if (Status s = product.Prepare(finish, x, operands, attributes.channels, segments * depth,
                                   segments * PaddedDepth(depth), out);
        !s.ok())
      return s;
    if (out.size() == 0) return Status();
    if (IsPointwise(window))
      return MultiplyIntegerRows(product, x, out.size() / attributes.channels, depth, out);
    Window of_tiles = window;
    MakeLinesLong(&of_tiles);
    if (TilesAreWorthIt(out.size() / attributes.channels, segments * PaddedDepth(depth) / kQuad,
                        attributes.channels)) {
      const TileImage tiles(of_tiles, whole ? channels : PaddedDepth(channels),
                            PanelCount(attributes.channels), whole);
      if (tiles.Serves() && tiles.cycles() < CyclesByVectors(segments, depth))
        return ConvolveIntegersByTiles(product, of_tiles, whole, tiles, x, out);
    }
    Image image{static_cast<const std::uint8_t*>(x.raw_data()), {}, channels};
    std::int64_t positions = x.dim(0);
    bool direct = x.Is<std::uint8_t>() && depth % kQuad == 0;
    for (int i = 0; i < kMaxSpatial; ++i) {
      image.sizes[i] = Reached(window.axes[i]);
      positions = Times(positions, image.sizes[i]);
      direct = direct && image.sizes[i] == window.axes[i].input;
    }
    if (!direct) {
      std::uint8_t* copy = nullptr;
      if (Status s = Workspace(Plus(Times(positions, channels), kQuad), &copy); !s.ok()) return s;
      if (Status s = CopyWithBorder(x, window, product.x_zero, image, copy); !s.ok()) return s;
      image.data = copy;
    }
    return Run(product, window, image, segments, depth, x.dim(0), out);
  }

  // A copy of the image with what windows reach of its border.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 3);
    if (x == nullptr || !attributes.FitsRank(x->ndim)) return false;
    IntegerProduct::Declare(sizes, attributes.channels);
    std::int64_t bytes = Times(x->shape[0], LastDim(x));
    const int spatial = x->ndim - 2;
    for (int i = 0; i < spatial; ++i) {
      const WindowAxis given = attributes.window.Axis(i, spatial);
      const std::int64_t taps = attributes.window.kernel[static_cast<std::size_t>(i)];
      const std::int64_t reach = Plus(Times(taps - 1, given.dilation), 1);
      bytes = Times(bytes, Plus(x->shape[i + 1], std::max(given.before + given.after, reach)));
    }
    const std::int64_t channels = LastDim(x);
    if (attributes.IsPointwise()) {
      DeclareIntegerRows(sizes, SizeOf(x) / std::max<std::int64_t>(1, channels), channels);
      return true;
    }
    sizes.Take(bytes + kQuad, 1);
    const bool whole = attributes.window.dilations.empty() || attributes.window.dilations.back() == 1;
    DeclareTileImage(sizes, attributes, x, whole ? channels : PaddedDepth(channels), whole);
    return true;
  }

 private:
  // The cycles that vectors take, about, for each output position, without the work behind the sums: CPUs
  // with tiles multiply two vectors of quads in a cycle.
  std::int64_t CyclesByVectors(std::int64_t segments, std::int64_t depth) const {
    const std::int64_t vectors = PackedColumns(attributes.channels) / kHalfPanel;
    return Times(segments, PaddedDepth(depth) / kQuad, vectors) / 2;
  }

  // A block of output lines, whose windows stay in the second cache, by one panel after the other.
  static Status Run(const IntegerProduct& product, const Window& window, const Image& image,
                    std::int64_t segments, std::int64_t depth, std::int64_t images, TensorView out) {
    constexpr std::int64_t kBlock = 262144;      // bytes of the image
    constexpr std::int64_t kTaskWork = 1048576;  // products that are worth a thread's while, some 3 us
    const std::int64_t lines = images * window.axes[0].output * window.axes[1].output;
    const std::int64_t panels = PanelCount(product.columns);
    const std::int64_t line = Times(image.sizes[2], image.channels, window.axes[1].stride);
    const std::int64_t block = RowsOfBlock(lines, 1, kBlock / std::max<std::int64_t>(1, line), panels);
    const std::int64_t blocks = (lines + block - 1) / block;
    const LineParts parts(Times(blocks, panels), window.axes[2].output,
                          BestIntegerPanelKernel().RowsFor(segments));
    return ParallelFor(Times(blocks, parts.count(), panels),
                       GrainOf(kTaskWork, block, window.axes[2].output / parts.count(),
                               Plus(Times(segments, depth), kIntegerSumWork), kPanelWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t task = begin; task < end; ++task) {
                           const std::int64_t part = task / panels % parts.count();
                           const std::int64_t first = task / panels / parts.count() * block;
                           const std::int64_t last = std::min(lines, first + block);
                           const IntegerTile tile = product.Panel(task % panels, segments, depth);
                           for (std::int64_t i = first; i < last && !pace.stopped(); ++i)
                             RunLine(product, window, image, parts.Part(i, part), task % panels, out, tile,
                                     pace);
                         }
                       });
  }

  static void RunLine(const IntegerProduct& product, const Window& window, const Image& image,
                      const OfLine& of_line, std::int64_t panel, TensorView out, IntegerTile tile,
                      Pace& pace) {
    const IntegerPanelKernel& kernel = BestIntegerPanelKernel();
    const auto& [depth, rows, columns] = window.axes;
    const std::int64_t line = of_line.line;
    const std::int64_t oy = line % rows.output;
    const std::int64_t oz = line / rows.output % depth.output;
    const std::int64_t first = line / rows.output / depth.output * image.sizes[0] + oz * depth.stride;
    const std::int64_t pieces = tile.segments / (depth.kernel * rows.kernel);
    std::array<const std::uint8_t*, kMostTaps * kMostPanelRows> pointers;
    tile.rows = pointers.data();
    const std::int64_t step = columns.stride * image.channels;
    const std::int64_t whole_depth = Times(tile.segments, tile.depth);
    for (std::int64_t o = of_line.begin; o < of_line.end; o += tile.count) {
      tile.count = RowsOfTile(of_line.end - o, kernel.RowsFor(tile.segments));
      if (!pace.Spend(ProductsOf(tile.count, whole_depth))) return;
      const std::uint8_t** to = pointers.data();
      for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
        for (std::int64_t ky = 0; ky < rows.kernel; ++ky) {
          const std::int64_t y =
              (first + kz * depth.dilation) * image.sizes[1] + oy * rows.stride + ky * rows.dilation;
          for (std::int64_t kx = 0; kx < pieces; ++kx) {
            const std::int64_t at = y * image.sizes[2] + o * columns.stride + kx * columns.dilation;
            const std::uint8_t* from = image.data + at * image.channels;
            for (int i = 0; i < tile.count; ++i) *to++ = from + i * step;
          }
        }
      }
      tile.out = ElementAt(out, (line * columns.output + o) * product.columns + panel * kPanelWidth);
      kernel.run(tile);
    }
  }
};

}  // namespace

std::span<const Kernel> PackedIntegerConvKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedIntegerConv>(
          "x, w, sums, x_zero?, w_zero?, scale?, bias? -> out",
          "x, x_zero u8 i8; w, w_zero i8; sums i32; scale f32; bias i32 f32; out i32 f32 u8 i8",
          "channels, kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
          "SAME_UPPER, SAME_LOWER or VALID; activation, alpha, beta, post_scale, post_shift, zero, least, "
          "most as rewire.packed.matmul_integer",
          "x [N, spatial..., C] by w packed from [channels, C, kernel...], out and what it becomes as in "
          "rewire.packed.matmul_integer; the border is x_zero. w's segments are the window's rows, or its "
          "positions where the last dilation is not 1"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

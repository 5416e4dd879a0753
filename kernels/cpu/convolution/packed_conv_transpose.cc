// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution of images with the channels last, by windows that do not overlap and leave no gaps:
// the strides are the window's sizes. Each input position then makes a window of outputs of its own. What a
// row of the windows holds for a line of the input is a line of the output, so it is a product of the line's
// positions by packed weights (panels.h) that is written where it belongs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/few_columns.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

struct PackedConvTranspose {
  static constexpr const char* kName = names::kPackedConvTranspose;
  std::vector<std::int64_t> kernel;
  std::int64_t channels = 1;  // of out
  Activation activation;

  static Status Make(Attributes& given, PackedConvTranspose* conv) {
    conv->activation.Read(given);
    given.Require("channels");
    given.Require("kernel_shape");
    conv->channels = given.Int("channels", 1, 1, kMostColumns);
    conv->kernel = given.Ints("kernel_shape", {1});
    return conv->CheckKernel();
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out).SameDType("w", w, "x", x).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return TypeError("x has dtype ", DTypeName(x.dtype()), ", expected f32");
    if (x.ndim() != static_cast<int>(kernel.size()) + 2)
      return ValueError("x has shape ", x.dims(), ", expected rank ", kernel.size() + 2);
    Dims expected(x.dims());
    for (std::size_t i = 0; i < kernel.size(); ++i)
      expected[static_cast<int>(i) + 1] = Times(kernel[i], x.dim(static_cast<int>(i) + 1));
    expected[x.ndim() - 1] = channels;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckAdded(bias, std::nullopt, channels, out); !s.ok()) return s;
    Call call = CallOf(x);
    const std::int64_t packed[] = {Times(call.rows(), PackedColumns(call.columns)), call.in_channels};
    if (Status s = CheckShape("w", w, ShapeView(packed, 2)); !s.ok()) return s;
    if (out.size() == 0) return Status();
    float* terms = nullptr;
    if (Status s = Workspace(call.columns, &terms); !s.ok()) return s;
    if (Status s = SpreadBias(IsGiven(bias) ? bias->data<float>() : nullptr, call.columns, terms); !s.ok())
      return s;
    call.x = x.data<float>();
    call.w = w.data<float>();
    call.bias = terms;
    call.out = out.data<float>();
    return call.columns <= kMostFewColumns ? RunFewColumns(call) : RunPanels(call);
  }
  // The bias of a row of the window.
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    sizes.Take(Times(kernel.back(), channels), sizeof(float));
    return true;
  }

 private:
  // Axes without a window are joined with the one behind, so that lines are long.
  struct Call {
    std::int64_t images, depth, height, width, in_channels;  // of x
    std::int64_t depth_taps, height_taps;
    std::int64_t columns;  // outputs of a row of the window
    std::int64_t pieces;   // of a line
    const float *x, *w, *bias;
    float* out;

    std::int64_t all_pieces() const { return Times(images, depth, height, pieces); }
    // The number of rows of a window, over its depth and height.
    std::int64_t rows() const { return Times(depth_taps, height_taps); }
    // Floats from one line of out to the next.
    std::int64_t line_step() const { return width * columns; }
    // The line of out of the window's row for a line of the input.
    std::int64_t LineOfOut(std::int64_t line, std::int64_t row) const {
      const std::int64_t y = line % height * height_taps + row % height_taps;
      return (line / height * depth_taps + row / height_taps) * height * height_taps + y;
    }
  };
  // Positions [begin, end) of a line.
  struct Piece {
    std::int64_t line, begin, end;
  };

  Status CheckKernel() const {
    const ShapeView given(kernel.data(), kernel.size());
    if (kernel.empty() || kernel.size() > kMaxSpatial)
      return ValueError("attribute 'kernel_shape' has ", kernel.size(), " ints, expected 1 to ", kMaxSpatial);
    std::int64_t columns = channels;
    for (const std::int64_t size : kernel) {
      if (size < 1) return ValueError("attribute 'kernel_shape' is ", given, ", expected ints of at least 1");
      columns = Times(columns, size);
    }
    if (columns <= kMostColumns) return Status();
    return ValueError("attribute 'kernel_shape' is ", given, ", expected at most ", kMostColumns,
                      " outputs of a window");
  }

  Call CallOf(TensorView x) const {
    constexpr std::int64_t kLongest = 256;  // positions
    std::array<std::int64_t, kMaxSpatial> sizes = {1, 1, 1}, taps = {1, 1, 1};
    const std::size_t missing = kMaxSpatial - kernel.size();
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      sizes[missing + i] = x.dim(static_cast<int>(i) + 1);
      taps[missing + i] = kernel[i];
    }
    std::int64_t images = x.dim(0);
    for (int i = 1; i < kMaxSpatial && taps[1] == 1; ++i) {
      sizes[2] *= sizes[1];
      sizes[1] = sizes[0];
      taps[1] = taps[0];
      sizes[0] = images;
      taps[0] = 1;
      images = 1;
    }
    Call call = {};
    call.images = images;
    call.depth = sizes[0];
    call.height = sizes[1];
    call.width = sizes[2];
    call.depth_taps = taps[0];
    call.height_taps = taps[1];
    call.in_channels = x.dim(x.ndim() - 1);
    call.columns = Times(taps[2], channels);
    call.pieces = (call.width + kLongest - 1) / kLongest;
    return call;
  }

  // SpreadBias writes the bias for each tap of a row, one behind the other.
  Status SpreadBias(const float* bias, std::int64_t columns, float* terms) const {
    Pace pace;
    for (std::int64_t at = 0; at < columns; at += channels) {
      if (!pace.Spend(channels)) return Stopped();
      if (bias == nullptr)
        std::fill_n(terms + at, channels, 0.0F);
      else
        std::copy_n(bias, channels, terms + at);
    }
    return Status();
  }

  static Piece PieceOf(const Call& call, std::int64_t piece) {
    const std::int64_t part = piece % call.pieces;
    return {piece / call.pieces, call.width * part / call.pieces, call.width * (part + 1) / call.pieces};
  }

  // A block of pieces, which stay in the second cache with their outputs, by one panel after the other.
  Status RunPanels(const Call& call) const {
    constexpr std::int64_t kBlock = 16384;  // floats
    const std::int64_t all = call.all_pieces();
    const std::int64_t panels = PanelCount(call.columns), of_block = Times(call.rows(), panels);
    const std::int64_t length = (call.width + call.pieces - 1) / call.pieces;
    const std::int64_t floats = Times(length, Plus(call.in_channels, Times(call.rows(), call.columns)));
    const std::int64_t block = RowsOfBlock(all, 1, kBlock / floats, of_block);
    const std::int64_t blocks = (all + block - 1) / block;
    return ParallelFor(Times(blocks, of_block),
                       GrainOf(16 * kGrain, block, length, call.in_channels, kPanelWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t task = begin; task < end; ++task) {
                           const std::int64_t row = task / panels % call.rows(), panel = task % panels;
                           const std::int64_t first = task / of_block * block;
                           const std::int64_t last = std::min(all, first + block);
                           for (std::int64_t i = first; i < last; ++i) {
                             const RowsByPanels product = ProductOf(call, PieceOf(call, i), row);
                             if (!MultiplyPanels(product, panel, panel + 1, pace)) return;
                           }
                         }
                       });
  }

  RowsByPanels ProductOf(const Call& call, const Piece& piece, std::int64_t row) const {
    return {call.x + (piece.line * call.width + piece.begin) * call.in_channels,
            piece.end - piece.begin,
            call.in_channels,
            call.w + row * PackedColumns(call.columns) * call.in_channels,
            call.columns,
            call.bias,
            nullptr,
            activation,
            call.out + call.LineOfOut(piece.line, row) * call.line_step() + piece.begin * call.columns};
  }

  Status RunFewColumns(const Call& call) const {
    const std::int64_t length = (call.width + call.pieces - 1) / call.pieces;
    constexpr std::int64_t kLoading = 4;  // what it takes to load and transpose a float, in products
    return ParallelFor(call.all_pieces(),
                       GrainOf(16 * kGrain, length, Plus(call.in_channels, 1),
                               Plus(Times(call.rows(), call.columns), kLoading)),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           if (!RunPiece(call, PieceOf(call, i), pace)) return;
                         }
                       });
  }

  bool RunPiece(const Call& call, const Piece& piece, Pace& pace) const {
    // Positions that are computed without asking whether to stop.
    const std::int64_t at_once =
        std::clamp<std::int64_t>(kPace / std::max<std::int64_t>(1, call.in_channels), kHalfPanel, 64);
    const FewColumnsFunction run = BestFewColumns();
    const std::int64_t of_row = PackedColumns(call.columns) * call.in_channels;
    FewColumns product = {};
    product.channels = call.in_channels;
    product.bias = call.bias;
    product.rows = call.height_taps;
    product.columns = call.columns;
    product.row_step = call.line_step();
    product.activation = activation;
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += at_once) {
      product.positions = std::min(at_once, piece.end - begin);
      product.x = call.x + (piece.line * call.width + begin) * call.in_channels;
      for (std::int64_t plane = 0; plane < call.depth_taps; ++plane) {
        const std::int64_t row = plane * call.height_taps;
        if (!pace.Spend(Times(product.positions, call.in_channels, call.height_taps))) return false;
        product.w = call.w + row * of_row;
        product.out = call.out + call.LineOfOut(piece.line, row) * call.line_step() + begin * call.columns;
        run(product);
      }
    }
    return true;
  }
};

}  // namespace

std::span<const Kernel> PackedConvTransposeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackedConvTranspose>(
          "x, w, bias? -> out", "f32",
          "channels, kernel_shape; activation, alpha, beta, post_scale, post_shift as rewire.packed.matmul",
          "as rewire.conv_transpose, the channels last, where the strides are the window: x [N, spatial..., "
          "C]; w: for each row of the window, one behind the other, packed from [row * channels, C]; plus "
          "bias [channels], then the activation"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

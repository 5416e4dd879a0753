// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows of 8-bit integers, or of floats, by a packed matrix of 8-bit integers (integer_panels.h),
// and packs such a matrix.
#include <algorithm>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/gemm_packed_bytes.h"
#include "rewire/kernels/cpu/product/gemm_packed_integers.h"
#include "rewire/kernels/cpu/product/packed_integer_call.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct PackIntegers {
  static constexpr const char* kName = names::kPackedPackIntegers;
  bool outputs_first = false;
  std::int64_t segments = 1;
  static Status Make(Attributes& attributes, PackIntegers* pack) {
    pack->outputs_first = attributes.Choice("order", {"IO", "OI"}, 0) == 1;
    pack->segments = attributes.Int("segments", 1, 1, kMostColumns);
    return Status();
  }

  Status operator()(TensorView w, TensorView out, TensorView sums) const {
    Checks checks;
    checks.Dense("w", w).Dense("out", out).Dense("sums", sums).NoOverlap("out", out, "w", w);
    checks.NoOverlap("sums", sums, "w", w).NoOverlap("sums", sums, "out", out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!w.Is<std::uint8_t>() && !w.Is<std::int8_t>())
      return WrongDType(Types<std::uint8_t, std::int8_t>(), "w", w);
    if (!out.Is<std::int8_t>()) return WrongDType(Types<std::int8_t>(), "out", out);
    if (!sums.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "sums", sums);
    if (w.ndim() < 2 || (!outputs_first && w.ndim() != 2)) {
      return ValueError("w has shape ", w.dims(), ", expected ", outputs_first ? "[N, K, ...]" : "[K, N]");
    }
    const std::int64_t columns = w.dim(outputs_first ? 0 : 1);
    const std::int64_t channels = w.dim(outputs_first ? 1 : 0);
    const std::int64_t taps = Product(w.dims(), 2, w.ndim());
    const std::int64_t depth = Times(channels, taps);
    if (depth % segments != 0) {
      return ValueError("w has shape ", w.dims(), ", expected a depth that is a multiple of ", segments,
                        " segments");
    }
    const std::int64_t expected[] = {PackedColumns(columns), Times(segments, PaddedDepth(depth / segments))};
    if (Status s = CheckShape("out", out, ShapeView(expected, 2)); !s.ok()) return s;
    if (Status s = CheckShape("sums", sums, ShapeView(&columns, 1)); !s.ok()) return s;
    return Write(w, columns, channels, taps, out.data<std::uint8_t>(), sums.data<std::int32_t>());
  }

 private:
  // [N, C, taps...] is read as [N, taps, C], as images with the channels last have it. Unsigned weights are
  // stored 128 lower.
  Status Write(TensorView w, std::int64_t columns, std::int64_t channels, std::int64_t taps, std::uint8_t* to,
               std::int32_t* sums) const {
    const auto* from = static_cast<const std::uint8_t*>(w.raw_data());
    const auto flip = static_cast<std::uint8_t>(w.Is<std::uint8_t>() ? 0x80 : 0);
    const std::int64_t depth = channels * taps;
    const std::int64_t length = depth / segments;
    Pace pace;
    const std::int64_t bytes = Times(PackedColumns(columns), segments, PaddedDepth(length));
    if (!pace.Fill(to, bytes, std::uint8_t{0}) || !pace.Fill(sums, columns, 0)) return Stopped();
    for (std::int64_t p = 0; p < PanelCount(columns); ++p) {
      const std::int64_t width = WidthOfPanel(p, columns);
      if (!pace.Spend(1)) return Stopped();
      for (std::int64_t k = 0; k < depth; ++k) {
        if (!pace.Spend(width)) return Stopped();
        const std::int64_t row = k / length * PaddedDepth(length) + k % length;
        std::uint8_t* quad = to + row / kQuad * kQuad * width + row % kQuad;
        const std::int64_t inner = outputs_first ? k % channels * taps + k / channels : k;
        for (std::int64_t j = 0; j < UsedOfPanel(p, columns); ++j) {
          const std::int64_t column = p * kPanelWidth + j;
          const auto value = static_cast<std::uint8_t>(
              from[outputs_first ? column * depth + inner : inner * columns + column] ^ flip);
          quad[j * kQuad] = value;
          sums[column] += static_cast<std::int8_t>(value);
        }
      }
      to += width * segments * PaddedDepth(length);
    }
    return Status();
  }
};

struct PackedIntegerMatMul {
  static constexpr const char* kName = names::kPackedMatMulInteger;
  std::int64_t columns = 1;
  IntegerFinishAttributes finish;
  static Status Make(Attributes& attributes, PackedIntegerMatMul* matmul) {
    attributes.Require("columns");
    matmul->columns = attributes.Int("columns", 1, 1, kMostColumns);
    return matmul->finish.Read(attributes);
  }

  Status operator()(TensorView x, TensorView w, TensorView sums, std::optional<TensorView> x_zero,
                    std::optional<TensorView> w_zero, std::optional<TensorView> scale,
                    std::optional<TensorView> bias, TensorView out) const {
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    if (x.ndim() < 1) return ValueError("x is a scalar, expected [..., K]");
    const std::int64_t depth = x.dim(x.ndim() - 1);
    Dims expected(x.dims());
    expected[x.ndim() - 1] = columns;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    IntegerProduct product{};
    const IntegerOperands operands{w, sums, x_zero, w_zero, scale, bias};
    if (Status s = product.Prepare(finish, x, operands, columns, depth, PaddedDepth(depth), out); !s.ok())
      return s;
    return MultiplyIntegerRows(product, x, out.size() / columns, depth, out);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 1);
    if (x == nullptr) return false;
    IntegerProduct::Declare(sizes, columns);
    const std::int64_t depth = LastDim(x);
    DeclareIntegerRows(sizes, SizeOf(x) / std::max<std::int64_t>(1, depth), depth);
    return true;
  }
};

struct PackedBytesMatMul {
  static constexpr const char* kName = names::kPackedMatMulBytes;
  std::int64_t columns = 1;
  int limbs = 3;
  Activation activation;
  static Status Make(Attributes& attributes, PackedBytesMatMul* matmul) {
    attributes.Require("columns");
    matmul->columns = attributes.Int("columns", 1, 1, kMostColumns);
    const std::int64_t bits = attributes.Int("bits", 24, 16, 24);
    if (bits != 16 && bits != 24) return ValueError("bits is ", bits, ", expected 16 or 24");
    matmul->limbs = static_cast<int>(bits / 8);
    matmul->activation.Read(attributes);
    return Status();
  }

  Status operator()(TensorView x, TensorView w, TensorView scale, std::optional<TensorView> bias,
                    std::optional<TensorView> addend, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out).SameDType("out", out, "x", x).SameDType("scale", scale, "x", x);
    checks.Dense("scale", scale).Shape("scale", scale, ShapeView(&columns, 1));
    checks.NoOverlap("out", out, "scale", scale);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return WrongDType(Types<float>(), "x", x);
    if (!w.Is<std::int8_t>()) return WrongDType(Types<std::int8_t>(), "w", w);
    if (x.ndim() < 1) return ValueError("x is a scalar, expected [..., K]");
    const std::int64_t depth = x.dim(x.ndim() - 1);
    const std::int64_t packed[] = {PackedColumns(columns), PaddedDepth(depth)};
    Dims expected(x.dims());
    expected[x.ndim() - 1] = columns;
    Checks shapes;
    shapes.Shape("w", w, ShapeView(packed, 2)).Shape("out", out, expected.view());
    if (Status s = shapes.Take(); !s.ok()) return s;
    if (Status s = CheckAdded(bias, addend, columns, out); !s.ok()) return s;
    const RowsByBytes product = {x.data<float>(),
                                 out.size() / columns,
                                 depth,
                                 w.data<std::int8_t>(),
                                 columns,
                                 limbs,
                                 scale.data<float>(),
                                 IsGiven(bias) ? bias->data<float>() : nullptr,
                                 IsGiven(addend) ? addend->data<float>() : nullptr,
                                 activation,
                                 out.data<float>()};
    return MultiplyRowsByBytes(product);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 1);
    if (x == nullptr) return false;
    const std::int64_t depth = LastDim(x);
    DeclareRowsByBytes(sizes, SizeOf(x) / std::max<std::int64_t>(1, depth), depth, limbs);
    return true;
  }
};

}  // namespace

std::span<const Kernel> PackedIntegerMatMulKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackIntegers>(
          "w -> out, sums", "w u8 i8; out i8; sums i32", "order = IO or OI, segments = 1",
          "w [K, N], or with OI [N, K] or [N, C, taps...], as the kernels of this family read it: out [N "
          "rounded up to 16, K, each of its segments rounded up to 4], sums [N] of out's columns; u8 is "
          "stored 128 lower. It holds the same on every CPU"),
      Describe<PackedIntegerMatMul>(
          "x, w, sums, x_zero?, w_zero?, scale?, bias? -> out",
          "x, x_zero u8 i8; w, w_zero i8; sums i32; scale f32; bias i32 f32; out i32 f32 u8 i8",
          "columns, activation, alpha, beta, post_scale, post_shift as rewire.packed.matmul, zero = 0, "
          "least, most",
          "x [..., K] less x_zero by packed w less w_zero (one element or [columns], 128 lower for u8 "
          "weights), plus bias of i32 [columns]: the exact sum. For out f32 times scale (one element or "
          "[columns]), plus bias of f32, then the activation; for u8 and i8 times scale, plus bias, "
          "rounded to the nearest and even one, plus zero, held between least and most"),
      Describe<PackedBytesMatMul>(
          "x, w, scale, bias?, addend? -> out over addend", "x, scale, bias, addend, out f32; w i8",
          "columns, bits = 24 or 16; activation, alpha, beta, post_scale, post_shift as rewire.packed.matmul",
          "x [..., K] by the weights of 8 bits of rewire.packed.pack_integers times scale [columns], plus "
          "bias "
          "[columns], plus addend of out's shape, then the activation. Where the CPU multiplies bytes faster "
          "than floats, 256 elements of x at a time are rounded to 8,355,584ths of the largest, or to "
          "32,639ths "
          "with 16 bits. Otherwise products are those of floats, as are those of rows with an element that "
          "is "
          "not finite"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows by a packed matrix (panels.h), and packs a matrix.
#include <algorithm>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct Pack {
  static constexpr const char* kName = names::kPackedPack;
  bool outputs_first = false;
  static Status Make(Attributes& attributes, Pack* pack) {
    pack->outputs_first = attributes.Choice("order", {"IO", "OI"}, 0) == 1;
    return Status();
  }

  Status operator()(TensorView w, TensorView out) const {
    Checks checks;
    checks.Dense("w", w).Dense("out", out).NoOverlap("out", out, "w", w);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!w.Is<float>()) return TypeError("w has dtype ", DTypeName(w.dtype()), ", expected f32");
    if (!out.Is<float>() && !out.Is<BFloat16>() && !out.Is<Float16>())
      return WrongDType(Types<float, BFloat16, Float16>(), "out", out);
    if (w.ndim() < 2 || (!outputs_first && w.ndim() != 2)) {
      return ValueError("w has shape ", w.dims(), ", expected ", outputs_first ? "[N, K, ...]" : "[K, N]");
    }
    const std::int64_t columns = w.dim(outputs_first ? 0 : 1);
    // [M, C, taps...] is read as [M, taps, C]: the channels of a tap lie side by side in an image.
    const std::int64_t channels = w.dim(outputs_first ? 1 : 0);
    const std::int64_t taps = Product(w.dims(), 2, w.ndim());
    const bool pairs = out.Is<BFloat16>();
    const std::int64_t depth = Times(pairs ? 2 * PairsOf(channels) : channels, taps);
    const std::int64_t expected[] = {PackedColumns(columns), depth};
    if (Status s = CheckShape("out", out, ShapeView(expected, 2)); !s.ok()) return s;
    if (pairs) return Write<BFloat16, 2>(w, columns, channels, taps, out.data<BFloat16>());
    return out.Is<Float16>() ? Write<Float16, 1>(w, columns, channels, taps, out.data<Float16>())
                             : Write<float, 1>(w, columns, channels, taps, out.data<float>());
  }

 private:
  // Units of `kOfUnit` elements, of successive channels of a tap.
  template <typename T, std::int64_t kOfUnit>
  Status Write(TensorView w, std::int64_t columns, std::int64_t channels, std::int64_t taps, T* to) const {
    const std::int64_t padded = (channels + kOfUnit - 1) / kOfUnit * kOfUnit;
    Pace pace;
    for (std::int64_t p = 0; p < PanelCount(columns); ++p) {
      const std::int64_t width = WidthOfPanel(p, columns);
      const std::int64_t used = UsedOfPanel(p, columns);
      const std::int64_t first = p * kPanelWidth;
      if (!pace.Spend(1)) return Stopped();
      for (std::int64_t k = 0; k < padded * taps; ++k) {
        if (!pace.Spend(width)) return Stopped();
        T* unit = to + k / kOfUnit * kOfUnit * width + k % kOfUnit;
        const std::int64_t channel = k % padded;
        const std::int64_t count = channel < channels ? used : 0;
        const std::int64_t inner = channel * taps + k / padded;
        const float* from =
            w.data<float>() + (outputs_first ? first * channels * taps + inner : channel * columns + first);
        const std::int64_t step = outputs_first ? channels * taps : 1;
        for (std::int64_t j = 0; j < count; ++j) unit[j * kOfUnit] = static_cast<T>(from[j * step]);
        for (std::int64_t j = count; j < width; ++j) unit[j * kOfUnit] = static_cast<T>(0.0F);
      }
      to += width * padded * taps;
    }
    return Status();
  }
};

struct PackedMatMul {
  static constexpr const char* kName = names::kPackedMatMul;
  std::int64_t columns = 1;
  Activation activation;
  static Status Make(Attributes& attributes, PackedMatMul* matmul) {
    attributes.Require("columns");
    matmul->columns = attributes.Int("columns", 1, 1, kMostColumns);
    matmul->activation.Read(attributes);
    return Status();
  }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias,
                    std::optional<TensorView> addend, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckDTypes(x, w, out); !s.ok()) return s;
    if (x.ndim() < 1) return ValueError("x is a scalar, expected [..., K]");
    const std::int64_t depth = x.dim(x.ndim() - 1);
    const bool pairs = w.Is<BFloat16>();
    const std::int64_t packed[] = {PackedColumns(columns), pairs ? 2 * PairsOf(depth) : depth};
    if (Status s = CheckShape("w", w, ShapeView(packed, 2)); !s.ok()) return s;
    Dims expected(x.dims());
    expected[x.ndim() - 1] = columns;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckAdded(bias, addend, columns, out, true); !s.ok()) return s;
    RowsByPanels product = {static_cast<const float*>(x.raw_data()),
                            out.size() / columns,
                            depth,
                            static_cast<const float*>(w.raw_data()),
                            columns,
                            IsGiven(bias) ? bias->data<float>() : nullptr,
                            AddendOf(addend),
                            activation,
                            static_cast<float*>(out.raw_data())};
    if (out.Is<BFloat16>()) product.rounded = static_cast<std::uint16_t*>(out.raw_data());
    if (w.Is<Float16>()) product.unit = PanelUnit::kHalf;
    if (!pairs) return MultiplyRows(product);
    if (x.Is<float>()) return MultiplyRoundedRows(product);
    product.unit = PanelUnit::kPair;
    product.depth = PairsOf(depth);
    return MultiplyPairRows(product);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0, 1), *w = sizes.Tensor(1);
    if (x == nullptr || w == nullptr) return false;
    if (!SameDType(w->dtype, DTypeOf<BFloat16>())) return true;
    const std::int64_t depth = LastDim(x), rows = SizeOf(x) / std::max<std::int64_t>(1, depth);
    if (SameDType(x->dtype, DTypeOf<BFloat16>()))
      DeclarePairRows(sizes, rows, PairsOf(depth));
    else
      DeclareRoundedRows(sizes, rows, depth);
    return true;
  }
};

}  // namespace

std::span<const Kernel> PackedMatMulKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Pack>("w -> out", "w f32; out f32 bf16 f16", "order = IO or OI",
                     "w [K, N], or with OI [N, K] or [N, C, taps...], as the kernels of this family read it: "
                     "out [N rounded up to 16, K]; in bf16 K, or C of each tap, is rounded up to 2. It holds "
                     "the same on every CPU"),
      Describe<PackedMatMul>(
          "x, w, bias?, addend? -> out over addend",
          "x f32 bf16; w f32 bf16 f16; addend, out f32 bf16; bias f32",
          "columns, activation = none, relu, clip, sigmoid, tanh, hard_swish, swish, gelu or "
          "leaky_relu, alpha = 0.0, beta = 0.0, post_scale = 1.0, post_shift = 0.0",
          "x [..., K] by packed w [K, columns], plus bias [columns], plus addend of out's "
          "shape, then the activation, times post_scale, plus post_shift; for w bf16 x is rounded to bf16, "
          "and the sums are f32. out bf16 is "
          "the same, rounded; "
          "x bf16 needs w bf16 and K even. w f16 becomes f32 where it is multiplied"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

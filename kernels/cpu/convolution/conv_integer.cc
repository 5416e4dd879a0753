// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers into 32-bit sums.
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/convolution/direct_conv.h"
#include "rewire/kernels/cpu/product/widened.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::cpu {
namespace {

struct ConvInteger {
  static constexpr const char* kName = names::kConvInteger;
  ConvAttributes attributes;
  static Status Make(Attributes& given, ConvInteger* conv) { return conv->attributes.Read(given); }
  Status operator()(TensorView x, TensorView w, std::optional<TensorView> x_zero,
                    std::optional<TensorView> w_zero, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "w", w, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "out", out);
    Window window;
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), w.dims(), &window, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (IsGiven(x_zero) && x_zero->size() != 1)
      return ValueError("x_zero has shape ", x_zero->dims(), ", expected one element");
    Widened image, weights;
    if (Status s = image.Make("x", x, "x_zero", x_zero, 0); !s.ok()) return s;
    if (Status s = weights.Make("w", w, "w_zero", w_zero, 0); !s.ok()) return s;
    // Sums wrap: they are added up as unsigned numbers.
    const auto* from = image.view().data<std::uint32_t>();
    const auto* by = weights.view().data<std::uint32_t>();
    auto* to = out.data<std::uint32_t>();
    if (Status s = FillAll(to, out.size(), 0u); !s.ok()) return s;
    if (out.size() == 0) return Status();
    const ConvSizes sizes{out.dim(0), out.dim(1), w.dim(1), attributes.groups};
    return DirectConv<std::uint32_t>(window, sizes, from, by, to).Run();
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return DeclareWidened(sizes); }
};

}  // namespace

std::span<const Kernel> IntegerConvKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ConvInteger>(
          "x, w, x_zero?, w_zero? -> out", "x, x_zero u8 i8; w, w_zero u8 i8; out i32", "as rewire.conv",
          "rewire.conv of x - x_zero with w - w_zero, which has one element or one for each "
          "output channel; padding is x_zero"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

// SPDX-License-Identifier: Apache-2.0
// Matrix product of 8-bit integers into 32-bit sums.
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/matmul.h"
#include "rewire/kernels/cpu/product/widened.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::cpu {
namespace {

struct MatMulInteger {
  static constexpr const char* kName = names::kMatMulInteger;
  Status operator()(TensorView a, TensorView b, std::optional<TensorView> a_zero,
                    std::optional<TensorView> b_zero, TensorView out) const {
    Checks checks;
    checks.Operands("a", a, "b", b, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "out", out);
    Dims expected;
    if (Status s = MatMulDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    Widened left, right;
    if (Status s = left.Make("a", a, "a_zero", a_zero, std::max(0, a.ndim() - 2)); !s.ok()) return s;
    if (Status s = right.Make("b", b, "b_zero", b_zero, b.ndim() - 1); !s.ok()) return s;
    return MatMulInto(left.view(), right.view(), out);
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    return DeclareWidened(sizes) && DeclareMatMul(sizes, DTypeOf<std::int32_t>());
  }
};

}  // namespace

std::span<const Kernel> IntegerProductKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MatMulInteger>(
          "a, b, a_zero?, b_zero? -> out", "a, a_zero u8 i8; b, b_zero u8 i8; out i32", "",
          "numpy's matmul of a - a_zero and b - b_zero; a zero has one element, or one for "
          "each row of a or column of b"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

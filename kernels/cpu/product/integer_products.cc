// SPDX-License-Identifier: Apache-2.0
// Matrix product and convolution of 8-bit integers into 32-bit sums.
#include <algorithm>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/convolution/direct_conv.h"
#include "rewire/kernels/cpu/product/matmul.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

using Bytes = Types<std::uint8_t, std::int8_t>;

// The elements of an 8-bit tensor less their zero, as i32 in scratch memory: a tensor of the same shape.
class Widened {
 public:
  // `zero` has one element, or one for each position along `axis`.
  Status Make(const char* name, TensorView x, const char* zero_name, const std::optional<TensorView>& zero,
              int axis) {
    const bool has_zero = IsGiven(zero);
    const std::int64_t count = x.ndim() == 0 ? 1 : x.dim(axis);
    if (has_zero) {
      Checks checks;
      checks.Dense(zero_name, *zero).SameDType(zero_name, *zero, name, x);
      if (Status s = checks.Take(); !s.ok()) return s;
      if (zero->size() != 1 && zero->dims() != ShapeView(&count, 1)) {
        return ValueError(zero_name, " has shape ", zero->dims(), ", expected one element or [", count,
                          "] as axis ", axis, " of ", name, " with shape ", x.dims());
      }
    }
    std::int32_t* to = nullptr;
    const std::int64_t size = x.size();
    if (Status s = Workspace(std::max<std::int64_t>(1, size), &to); !s.ok()) return s;
    tensor_ = *x.dl_tensor();
    tensor_.data = to;
    tensor_.byte_offset = 0;
    tensor_.strides = nullptr;
    tensor_.dtype = DTypeOf<std::int32_t>();
    const std::int64_t inner = x.ndim() == 0 ? 1 : Product(x.dims(), axis + 1, x.ndim());
    return ForType(Bytes(), name, x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.data<T>();
      const T* zeros = has_zero ? zero->data<T>() : nullptr;
      const bool one = has_zero && zero->size() == 1;
      return SerialFor(size, 2, [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          const std::int32_t shift = zeros == nullptr ? 0 : zeros[one ? 0 : i / inner % count];
          to[i] = std::int32_t{from[i]} - shift;
        }
      });
    });
  }
  TensorView view() const { return TensorView(&tensor_); }

 private:
  DLTensor tensor_{};
};

// Both operands of a kernel, widened.
bool DeclareWidened(WorkspaceSizes& sizes) {
  for (const std::int32_t i : {0, 1}) {
    const DLTensor* tensor = sizes.Tensor(i);
    if (tensor == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, SizeOf(tensor)), sizeof(std::int32_t));
  }
  return true;
}

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
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return DeclareWidened(sizes); }
};

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
    return DirectConv(
               window, sizes, [from](std::int64_t i) { return from[i]; },
               [by](std::int64_t i) { return by[i]; }, to)
        .Run();
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const { return DeclareWidened(sizes); }
};

}  // namespace

std::span<const Kernel> IntegerProductKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MatMulInteger>(
          "a, b, a_zero?, b_zero? -> out", "a, a_zero u8 i8; b, b_zero u8 i8; out i32", "",
          "numpy's matmul of a - a_zero and b - b_zero; a zero has one element, or one for "
          "each row of a or column of b"),
      Describe<ConvInteger>(
          "x, w, x_zero?, w_zero? -> out", "x, x_zero u8 i8; w, w_zero u8 i8; out i32", "as rewire.conv",
          "rewire.conv of x - x_zero with w - w_zero, which has one element or one for each "
          "output channel; padding is x_zero"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

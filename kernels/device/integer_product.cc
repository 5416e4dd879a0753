// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 8-bit integers with 32-bit sums.
#include <algorithm>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/product_arguments.h"
#include "rewire/kernels/device/registry.h"
#include "rewire/kernels/device/window_arguments.h"

namespace rewire::kernel::device {
namespace {

using Zero = std::optional<TensorView>;

bool IsByte(TensorView tensor) { return tensor.Is<std::uint8_t>() || tensor.Is<std::int8_t>(); }
int IsSigned(TensorView tensor) { return tensor.Is<std::int8_t>() ? 1 : 0; }
int ZerosOf(const Zero& zero) { return cpu::IsGiven(zero) ? static_cast<int>(zero->size()) : 0; }

Status CheckOperand(const char* what, TensorView x, TensorView out) {
  if (Status s = DeviceChecks().Beside(what, x, out).Take(); !s.ok()) return s;
  return IsByte(x) ? Status() : TypeError(what, " is ", DTypeName(x.dtype()), ", expected u8 or i8");
}

// One element, or one for each of `lines`, if there are lines.
Status CheckOperandZero(const char* what, const Zero& zero, TensorView x, std::int64_t lines) {
  if (!cpu::IsGiven(zero)) return Status();
  if (Status s = DeviceChecks().Beside(what, *zero, x).SameDType(what, *zero, "x", x).Take(); !s.ok())
    return s;
  if (zero->size() == 1 || (lines > 0 && zero->dims() == ShapeView(&lines, 1))) return Status();
  return lines > 0 ? ValueError(what, " has shape ", zero->dims(), ", expected one element or [", lines, "]")
                   : ValueError(what, " has shape ", zero->dims(), ", expected one element");
}

Status CheckSums(TensorView out) {
  if (Status s = CheckOnDevice("out", out); !s.ok()) return s;
  return out.Is<std::int32_t>() ? Status() : TypeError("out is ", DTypeName(out.dtype()), ", expected i32");
}

struct MatMulInteger {
  static constexpr const char* kName = names::kOnDevice<names::kMatMulInteger>;
  Status operator()(TensorView a, TensorView b, Zero a_zero, Zero b_zero, TensorView out) const {
    if (Status s = CheckSums(out); !s.ok()) return s;
    if (Status s = CheckOperand("a", a, out); !s.ok()) return s;
    if (Status s = CheckOperand("b", b, out); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::MatMulDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t rows = a.ndim() < 2 ? 0 : a.dim(a.ndim() - 2);
    const std::int64_t columns = b.ndim() < 2 ? 0 : b.dim(b.ndim() - 1);
    if (Status s = CheckOperandZero("a_zero", a_zero, a, rows); !s.ok()) return s;
    if (Status s = CheckOperandZero("b_zero", b_zero, b, columns); !s.ok()) return s;
    if (out.size() == 0) return Status();
    std::int64_t batches = 0;
    const ProductArguments product = MatMulArguments(a.dims(), b.dims(), out.dims(), &batches);
    const Bytes bytes{IsSigned(a), IsSigned(b), ZerosOf(a_zero), ZerosOf(b_zero)};
    Call call(out, Program::kProduct, Form::kF32, "integer_product");
    call.Tensor(a).Tensor(b).Optional(a_zero, a).Optional(b_zero, b).Tensor(out).Value(product).Value(bytes);
    return RunTiles(call, kTile, product.m, product.n, batches);
  }
};

struct ConvInteger {
  static constexpr const char* kName = names::kOnDevice<names::kConvInteger>;
  cpu::ConvAttributes attributes;
  static Status Make(Attributes& given, ConvInteger* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, Zero x_zero, Zero w_zero, TensorView out) const {
    if (Status s = CheckSums(out); !s.ok()) return s;
    if (Status s = CheckOperand("x", x, out); !s.ok()) return s;
    if (Status s = CheckOperand("w", w, out); !s.ok()) return s;
    cpu::Window window;
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), w.dims(), &window, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckWindow(window); !s.ok()) return s;
    if (Status s = CheckOperandZero("x_zero", x_zero, x, 0); !s.ok()) return s;
    if (Status s = CheckOperandZero("w_zero", w_zero, w, w.dim(0)); !s.ok()) return s;
    if (out.size() == 0) return Status();
    const WindowArguments arguments = ConvolutionArguments(window, x.dims(), w.dims(), attributes.groups);
    const Bytes bytes{IsSigned(w), IsSigned(x), ZerosOf(w_zero), ZerosOf(x_zero)};
    Call call(out, Program::kProduct, Form::kF32, "integer_convolution");
    call.Tensor(x).Tensor(w).Optional(x_zero, x).Optional(w_zero, w).Tensor(out).Value(arguments).Value(
        bytes);
    return RunTiles(call, kTile, arguments.out_channels, window.outputs(),
                    cpu::Times(x.dim(0), attributes.groups));
  }
};

}  // namespace

std::span<const Kernel> IntegerProductKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MatMulInteger>(
          "a, b, a_zero?, b_zero? -> out", "a, a_zero u8 i8; b, b_zero u8 i8; out i32", "",
          "numpy's matmul of a - a_zero and b - b_zero; a zero has one element, or one for "
          "each row of a or column of b"),
      Describe<ConvInteger>(
          "x, w, x_zero?, w_zero? -> out", "x, x_zero u8 i8; w, w_zero u8 i8; out i32",
          "as rewire.device.conv",
          "rewire.device.conv of x - x_zero with w - w_zero, which has one element or one for each "
          "output channel; padding is x_zero"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

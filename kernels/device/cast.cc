// SPDX-License-Identifier: Apache-2.0
// Elements in another dtype.
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

struct Cast {
  static constexpr const char* kName = names::kOnDevice<names::kCast>;
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    constexpr ElementTypes kAll = kReals | kIntegers | kBools;
    IntegerType from{}, to{};
    if (Status s = ElementTypeOf("x", x, kAll, &from); !s.ok()) return s;
    if (Status s = ElementTypeOf("out", out, kAll, &to); !s.ok()) return s;
    if (from != kTypeReal && to != kTypeReal) {
      Call call(out, Program::kInteger, Form::kF32, "integer_cast");
      call.Tensor(x).Tensor(out).Int(from).Int(to).Int(out.size());
      return call.Each(out.size());
    }
    if (from != kTypeReal) {
      Call call(out, Program::kElementwise, RealForm(out), "integer_to_real");
      call.Tensor(x).Tensor(out).Int(from).Int(out.size());
      return call.Each(out.size());
    }
    if (to != kTypeReal) {
      Call call(out, Program::kElementwise, RealForm(x), "real_to_integer");
      call.Tensor(x).Tensor(out).Int(to).Value(LeastOf(to)).Value(MostOf(to)).Int(out.size());
      return call.Each(out.size());
    }
    // Between two sizes of real numbers, the code's own is the smaller one.
    const bool from_half = x.dtype().bits == 16;
    if (from_half && out.dtype().bits == 16) return TypeError("no cast from f16 to f16 on a device");
    Call call(out, Program::kElementwise, RealForm(from_half ? x : out),
              from_half ? "real_to_f32" : "f32_to_real");
    call.Tensor(x).Tensor(out).Int(out.size());
    return call.Each(out.size());
  }
};

}  // namespace

std::span<const Kernel> CastKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Cast>(
          "x -> out", "others f32 f16 i64 i32 i16 i8 bool u16 u8", "",
          "x in out's dtype; a real number out of an integer's range becomes the nearest one in it, NaN 0; "
          "not from f16 to f16"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

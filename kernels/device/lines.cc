// SPDX-License-Identifier: Apache-2.0
// Work along the lines of an axis: the largest elements in order, and running sums.
#include <algorithm>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// Integers have no form of their own.
Form LineForm(TensorView x, IntegerType type) { return type == kTypeReal ? RealForm(x) : Form::kF32; }

struct TopK : WithAttributes<contract::TopKAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kTopK>;
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const {
    const DLTensor* values = sizes.Tensor(-2);
    if (values == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, DeclaredSize(*values)), sizeof(std::int32_t));
    return true;
  }

  Status operator()(TensorView x, TensorView values, TensorView indices) const {
    DeviceChecks checks;
    checks.On("out_values", values).Beside("x", x, values).Beside("out_indices", indices, values);
    checks.SameDType("out_values", values, "x", x).Shape("out_indices", indices, values.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{}, index{};
    if (Status s = ElementTypeOf("x", x, kReals | kIntegers, &type); !s.ok()) return s;
    if (Status s = ElementTypeOf("out_indices", indices, 1u << kTypeI64, &index); !s.ok()) return s;
    if (Status s = cpu::CheckRank("out_values", values, x.ndim()); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Dims expected(x.dims());
    expected[along] = std::min(x.dim(along), values.dim(along));
    if (Status s = cpu::CheckShape("out_values", values, expected.view()); !s.ok()) return s;
    if (values.size() == 0) return Status();
    const std::int64_t length = x.dim(along);
    const std::int64_t inner = cpu::Product(x.dims(), along + 1, x.ndim());
    const std::int64_t k = values.dim(along);
    const int bits = type == kTypeReal ? 32 : static_cast<int>(x.element_bytes() * 8);
    Scratch chosen;
    if (Status s = chosen.Make(x, DTypeOf<std::int32_t>(), values.size()); !s.ok()) return s;
    Call choose(x, Program::kLines, LineForm(x, type), "choose_top");
    choose.Tensor(x).Tensor(chosen.view()).Int(type).Int(bits).Int(largest ? 0 : 1);
    if (Status s = choose.Int(length).Int(inner).Int(k).Rows(x.size() / length); !s.ok()) return s;
    Call order(x, Program::kLines, LineForm(x, type), "order_top");
    order.Tensor(x).Tensor(chosen.view()).Tensor(values).Tensor(indices).Int(type).Int(bits);
    return order.Int(largest ? 0 : 1).Int(length).Int(inner).Int(k).Int(values.size()).Each(values.size());
  }
};

// A running sum or product.
struct Running : contract::RunningAttributes {
 protected:
  Status Run(TensorView x, TensorView axis, TensorView out, bool product) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).Beside("axis", axis, out).SameDType("out", out, "x", x);
    if (Status s = checks.Shape("out", out, x.dims()).Take(); !s.ok()) return s;
    IntegerType type{}, index{};
    if (Status s = ElementTypeOf("x", x, kReals | kIndices, &type); !s.ok()) return s;
    if (Status s = ElementTypeOf("axis", axis, kIndices, &index); !s.ok()) return s;
    if (axis.size() != 1) return ValueError("axis has shape ", axis.dims(), ", expected one element");
    if (x.ndim() == 0) return ValueError("x has no axis");
    if (out.size() == 0) return Status();
    Extents shape{};
    shape.rank = x.ndim();
    for (int i = 0; i < x.ndim(); ++i) shape.dims[i] = static_cast<int>(x.dim(i));
    const int shortest = *std::min_element(shape.dims, shape.dims + shape.rank);
    Call call(out, Program::kLines, LineForm(x, type),
              type == kTypeReal ? "running_reals" : "running_integers");
    call.Tensor(x).Tensor(axis).Tensor(out).Value(shape).Int(type).Int(product ? 1 : 0);
    call.Int(exclusive ? 1 : 0).Int(reverse ? 1 : 0).Int(out.size());
    return call.Rows(out.size() / shortest);
  }
};

struct CumSum : Running {
  static constexpr const char* kName = names::kOnDevice<names::kCumSum>;
  static Status Make(Attributes& attributes, CumSum* sum) {
    sum->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView axis, TensorView out) const { return Run(x, axis, out, false); }
};

struct CumProd : Running {
  static constexpr const char* kName = names::kOnDevice<names::kCumProd>;
  static Status Make(Attributes& attributes, CumProd* product) {
    product->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView axis, TensorView out) const { return Run(x, axis, out, true); }
};

constexpr const char kRunningTypes[] = "x, out f32 f16 i64 i32; axis i64 i32";

}  // namespace

std::span<const Kernel> LineKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<TopK>("x -> out_values, out_indices",
                     "x, out_values f32 f16 i64 i32 i16 i8 u16 u8; out_indices i64",
                     "axis = -1, largest = 1, sorted = 1",
                     "the largest (or smallest) elements along the axis, in order, and where they are; out's "
                     "length says how many; equal ones in their order, NaN above all",
                     REWIRE_KERNEL_DEVICE_WORKSPACE),
      Describe<CumSum>("x, axis -> out", kRunningTypes, "exclusive = 0, reverse = 0",
                       "running sums along the axis; integers wrap"),
      Describe<CumProd>("x, axis -> out", kRunningTypes, "exclusive = 0, reverse = 0",
                        "running products along the axis; integers wrap"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

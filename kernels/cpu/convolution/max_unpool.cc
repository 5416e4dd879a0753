// SPDX-License-Identifier: Apache-2.0
//
// Puts maxima back where max pooling found them.
#include <algorithm>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct UnpoolAttributes {
  WindowAttributes window;

  Status Read(Attributes& attributes) {
    window.Read(attributes, true, false);
    return window.Check();
  }
  // The shape that was pooled, as far as it can be known: windows that just fit.
  Status Resolve(ShapeView x, Dims* result) const {
    const int spatial = static_cast<int>(x.size()) - 2;
    if (spatial < 1 || window.kernel.size() != static_cast<std::size_t>(spatial)) {
      return ValueError("x has shape ", x, ", expected ", window.kernel.size(),
                        " spatial axes as kernel_shape");
    }
    if (Status s = window.CheckCounts(spatial); !s.ok()) return s;
    *result = Dims(ShapeView(x.data(), 2));
    for (int i = 0; i < spatial; ++i) {
      const WindowAxis axis = window.Axis(i, spatial);
      const auto at = static_cast<std::size_t>(i);
      // The numbers of the window are at most 2^30.
      const std::int64_t size =
          Plus(Times(std::max<std::int64_t>(0, x[at + 2] - 1), axis.stride), window.kernel[at]) -
          (x[at + 2] == 0 ? axis.stride : 0) - axis.before - axis.after;
      if (size < 0) return ValueError("the pads do not fit axis ", i + 2, " of x with shape ", x);
      result->push_back(size);
    }
    return Status();
  }
};

struct MaxUnpool {
  static constexpr const char* kName = names::kMaxUnpool;
  UnpoolAttributes attributes;
  static Status Make(Attributes& given, MaxUnpool* unpool) { return unpool->attributes.Read(given); }

  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("indices", indices).Dense("out", out).SameDType("out", out, "x", x);
    checks.Shape("indices", indices, x.dims()).Rank("out", out, x.ndim());
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "indices", indices);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!indices.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "indices", indices);
    Dims pooled;
    if (Status s = attributes.Resolve(x.dims(), &pooled); !s.ok()) return s;
    for (int i = 0; i < out.ndim(); ++i) {
      if (i < 2 ? out.dim(i) == x.dim(i) : out.dim(i) >= pooled[i]) continue;
      return ValueError("out has shape ", out.dims(), ", expected at least ", pooled.view());
    }
    return ForType(Types<float, double, std::int8_t, std::uint8_t>(), "x", x,
                   [&](auto tag) { return Write<typename decltype(tag)::type>(x, indices, pooled, out); });
  }

 private:
  // An index counts the elements of the pooled shape, of which out may be an enlargement.
  template <typename T>
  static Status Write(TensorView x, TensorView indices, const Dims& pooled, TensorView out) {
    const std::int64_t room = Product(pooled.view(), 0, pooled.rank());
    const Dims strides = DenseStrides(out.dims());
    const auto* index = indices.data<std::int64_t>();
    const std::int64_t size = x.size();
    const bool is_enlarged = !(pooled.view() == out.dims());
    Pace pace;
    if (!pace.Fill(out.data<T>(), out.size(), T{0})) return Stopped();
    for (std::int64_t i = 0; i < size; ++i) {
      if (!pace.Spend(8)) return Stopped();
      if (index[i] < 0 || index[i] >= room) {
        return ValueError("element ", i, " of indices is ", index[i], ", expected 0 to ", room - 1,
                          " for the pooled shape ", pooled.view());
      }
      std::int64_t rest = index[i];
      std::int64_t to = is_enlarged ? 0 : rest;
      for (int axis = pooled.rank() - 1; is_enlarged && axis >= 0; --axis) {
        to += rest % pooled[axis] * strides[axis];
        rest /= pooled[axis];
      }
      out.data<T>()[to] = x.data<T>()[i];
    }
    return Status();
  }
};

struct MaxUnpoolShape {
  static constexpr const char* kName = names::kShapeMaxUnpool;
  UnpoolAttributes attributes;
  static Status Make(Attributes& given, MaxUnpoolShape* unpool) { return unpool->attributes.Read(given); }
  Status operator()(TensorView x, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = attributes.Resolve(input.view(), &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

constexpr const char kAttributes[] = "kernel_shape, strides = ones, pads = zeros";

}  // namespace

std::span<const Kernel> MaxUnpoolKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MaxUnpool>(
          "x, indices -> out", "x, out f32 f64 i8 u8; indices i64", kAttributes,
          "each element of x at its index in the pooled shape, which out may be larger than; 0 "
          "elsewhere"),
      Describe<MaxUnpoolShape>("x -> out", "i64 i32; out i64", kAttributes,
                               "the pooled shape of rewire.max_unpool"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

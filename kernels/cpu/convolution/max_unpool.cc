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
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const bool is_enlarged = !(pooled.view() == out.dims());
    const auto is_wrong = [room](std::int64_t at) {
      return static_cast<std::uint64_t>(at) >= static_cast<std::uint64_t>(room);
    };
    std::int64_t wrong = -1;
    Pace pace;
    if (!pace.Fill(to, out.size(), T{0})) return Stopped();
    const bool done = pace.For(x.size(), is_enlarged ? 8 : 2, [&](std::int64_t i, std::int64_t end) {
      if (wrong >= 0) return;
      // The highest bit tells of an index below 0, and of one above the last.
      const auto last = static_cast<std::uint64_t>(room) - 1;
      std::uint64_t bits = 0;
      for (std::int64_t k = i; k < end; ++k) {
        const auto at = static_cast<std::uint64_t>(index[k]);
        bits |= at | (last - at);
      }
      if (bits >> 63 != 0) {
        wrong = std::find_if(index + i, index + end, is_wrong) - index;
      } else if (is_enlarged) {
        for (; i < end; ++i) to[Enlarged(index[i], pooled, strides)] = from[i];
      } else {
        for (; i < end; ++i) to[index[i]] = from[i];
      }
    });
    if (!done) return Stopped();
    if (wrong < 0) return Status();
    return ValueError("element ", wrong, " of indices is ", index[wrong], ", expected 0 to ", room - 1,
                      " for the pooled shape ", pooled.view());
  }

  // Returns where an element of the pooled shape lies in an enlargement with these strides.
  static std::int64_t Enlarged(std::int64_t at, const Dims& pooled, const Dims& strides) {
    std::int64_t to = 0;
    for (int axis = pooled.rank() - 1; axis >= 0; --axis) {
      to += at % pooled[axis] * strides[axis];
      at /= pooled[axis];
    }
    return to;
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

constexpr const char kUnpoolAttributes[] = "kernel_shape, strides = ones, pads = zeros";

}  // namespace

std::span<const Kernel> MaxUnpoolKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<MaxUnpool>(
          "x, indices -> out", "x, out f32 f64 i8 u8; indices i64", kUnpoolAttributes,
          "each element of x at its index in the pooled shape, which out may be larger than; 0 "
          "elsewhere"),
      Describe<MaxUnpoolShape>("x -> out", "i64 i32; out i64", kUnpoolAttributes,
                               "the pooled shape of rewire.max_unpool"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

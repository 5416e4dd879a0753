// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/shape/shapes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/vm/kernel/size_rules.h"

namespace rewire::kernel::cpu {

static_assert(contract::kMostRank == kMaxKernelRank);

namespace {

// The bytes between the lowest and the highest element.
struct Extent {
  std::uintptr_t begin;
  std::uintptr_t end;
};

Extent ExtentOf(TensorView tensor) {
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
  if (tensor.size() == 0) return {base, base};
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t dense = 1;
  for (int i = tensor.ndim() - 1; i >= 0; --i) {
    const bool has_strides = tensor.dl_tensor()->strides != nullptr;
    const std::int64_t span = (tensor.dim(i) - 1) * (has_strides ? tensor.stride(i) : dense);
    (span < 0 ? low : high) += span;
    dense *= tensor.dim(i);
  }
  const std::int64_t bytes = tensor.element_bytes();
  return {base + static_cast<std::uintptr_t>(low * bytes),
          base + static_cast<std::uintptr_t>((high + 1) * bytes)};
}

bool SameElements(TensorView a, TensorView b) {
  if (a.raw_data() != b.raw_data() || a.element_bytes() != b.element_bytes() || a.dims() != b.dims())
    return false;
  if (a.IsContiguous() && b.IsContiguous()) return true;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.dim(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

}  // namespace

Status BroadcastDims(ShapeView a, ShapeView b, Dims* result) {
  return contract::BroadcastSizes(a, b, result, kShapeError);
}

Status MatMulDims(ShapeView a, ShapeView b, Dims* result) {
  return contract::MatMulSizes(a, b, BroadcastDims, result, kShapeError);
}

Status MarkAxes(ShapeView axes, int rank, bool (&marked)[kMaxKernelRank]) {
  std::fill(marked, marked + kMaxKernelRank, false);
  return contract::MarkAxes(axes, rank, &marked, kShapeError);
}

Dims ReducedDims(ShapeView x, const bool (&reduced)[kMaxKernelRank], bool keepdims) {
  return contract::ReducedSizes<Dims>(x, reduced, keepdims);
}

Status PermutedDims(ShapeView x, const std::vector<std::int64_t>& perm, Dims* order, Dims* result) {
  return contract::PermutedSizes(x, ShapeView(perm.data(), perm.size()), order, result, kShapeError);
}

Status ConcatDims(ShapeView sum, ShapeView next, int axis, int input, Dims* result) {
  return contract::ConcatSizes(sum, next, axis, input, result, kShapeError);
}

Status GatherDims(ShapeView x, ShapeView indices, int axis, Dims* result) {
  return contract::GatheredSizes(x, indices, axis, result, kShapeError);
}

Status SliceDims(ShapeView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                 SliceRange* range) {
  *range = SliceRange();
  range->dims = Dims(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    range->start.push_back(0);
    range->step.push_back(1);
  }
  bool seen[kMaxKernelRank] = {};
  const auto cut = [&](std::size_t axis, std::size_t i, std::int64_t step) {
    if (std::exchange(seen[axis], true)) return false;
    const SlicedAxis sliced = SliceAxis(x[axis], starts[i], ends[i], step);
    const int at = static_cast<int>(axis);
    range->start[at] = sliced.first;
    range->step[at] = sliced.step;
    range->dims[at] = sliced.count;
    return true;
  };
  return contract::SliceAxes(x, starts, ends, axes, steps, cut, kShapeError);
}

Status PaddedDims(ShapeView x, ShapeView pads, Dims* result) {
  return contract::PaddedSizes(x, pads, result, kShapeError);
}

Status ReadInts(const char* what, TensorView tensor, Dims* values) {
  if (Status s = CheckDense(what, tensor); !s.ok()) return s;
  if (tensor.ndim() > 1 || tensor.size() > kMaxKernelRank) {
    return ValueError(what, " has shape ", tensor.dims(), ", expected rank 1 with at most ", kMaxKernelRank,
                      " elements");
  }
  *values = Dims();
  return ForType(Indices(), what, tensor, [&](auto tag) {
    const auto* data = tensor.data<typename decltype(tag)::type>();
    for (std::int64_t i = 0; i < tensor.size(); ++i) values->push_back(data[i]);
    return Status();
  });
}

Status ReadShape(const char* what, TensorView tensor, Dims* dims) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (Status s = ReadInts(what, tensor, dims); !s.ok()) return s;
  for (std::int64_t dim : dims->view()) {
    if (dim < 0 || dim > kMost) return ValueError(what, " is ", dims->view(), ", which is no shape");
  }
  return Status();
}

Status WriteShape(const Dims& dims, TensorView out) {
  const std::int64_t rank = dims.rank();
  if (Status s = Checks().Dense("out", out).Shape("out", out, ShapeView(&rank, 1)).Take(); !s.ok()) return s;
  if (!out.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out);
  std::copy_n(dims.view().data(), rank, out.data<std::int64_t>());
  return Status();
}

namespace {

Status CheckOne(const char* what, TensorView tensor) {
  if (Status s = CheckHost(what, tensor); !s.ok()) return s;
  if (tensor.size() == 1) return Status();
  return ValueError(what, " has shape ", tensor.dims(), ", expected one element");
}

}  // namespace

Status ReadInt(const char* what, TensorView tensor, std::int64_t* value) {
  if (Status s = CheckOne(what, tensor); !s.ok()) return s;
  return ForType(Integers(), what, tensor, [&](auto tag) {
    *value = static_cast<std::int64_t>(*tensor.data<typename decltype(tag)::type>());
    return Status();
  });
}

Status ReadNumber(const char* what, TensorView tensor, double* value) {
  if (Status s = CheckOne(what, tensor); !s.ok()) return s;
  return ForType(AnyNumbers(), what, tensor, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *value = static_cast<double>(static_cast<Computed<T>>(*tensor.data<T>()));
    return Status();
  });
}

Dims DenseStrides(ShapeView dims) {
  Dims strides(dims);
  // A shape function may be asked about dimensions that no tensor has; nothing steps by their product, which
  // may wrap.
  std::uint64_t step = 1;
  for (int i = strides.rank() - 1; i >= 0; --i) {
    strides[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(dims[static_cast<std::size_t>(i)]);
  }
  return strides;
}

Status ArangeCount(TensorView start, TensorView limit, TensorView delta, std::int64_t* count) {
  return ForType(ArangeTypes(), "start", start, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const T first = *start.data<T>();
    const T last = *limit.data<T>();
    const T step = *delta.data<T>();
    constexpr double kMost = 1ull << 48;
    if (step == 0) return ValueError("delta is 0");
    double steps = 0;
    if constexpr (std::is_integral_v<T>) {
      // The distance as an unsigned number: between two int64 it may not fit a signed one.
      const bool forward = step > 0;
      if (forward ? first >= last : first <= last) {
        *count = 0;
        return Status();
      }
      const auto low = static_cast<std::uint64_t>(forward ? first : last);
      const std::uint64_t distance = static_cast<std::uint64_t>(forward ? last : first) - low;
      const auto stride =
          forward ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
      const std::uint64_t whole = distance / stride + (distance % stride != 0 ? 1 : 0);
      if (static_cast<double>(whole) <= kMost) {
        *count = static_cast<std::int64_t>(whole);
        return Status();
      }
      steps = static_cast<double>(whole);
    } else {
      steps = std::ceil((static_cast<double>(last) - static_cast<double>(first)) / static_cast<double>(step));
      if (steps <= kMost) {  // not NaN
        *count = steps > 0 ? ToType<std::int64_t>(steps) : 0;
        return Status();
      }
    }
    return ValueError("start ", first, ", limit ", last, " and delta ", step, " make ", steps, " numbers");
  });
}

Status CheckInPlace(const char* out_name, TensorView out, const char* name, TensorView input) {
  const Extent a = ExtentOf(out);
  const Extent b = ExtentOf(input);
  if (a.begin >= b.end || b.begin >= a.end || SameElements(out, input)) return Status();
  return ValueError(out_name, " overlaps ", name, " without being the same elements");
}

}  // namespace rewire::kernel::cpu

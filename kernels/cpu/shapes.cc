// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/shapes.h"

#include <algorithm>

namespace rewire::kernel::cpu {
namespace {

// The bytes between the lowest and the highest element.
struct Extent {
  std::uintptr_t begin;
  std::uintptr_t end;
};

Extent ExtentOf(TensorView tensor) {
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t dense = 1;
  for (int i = tensor.ndim() - 1; i >= 0; --i) {
    if (tensor.dim(i) == 0) return {base, base};
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
  const Dims left(a);  // copies: `a` may be *result
  Dims dims;
  const int rank = static_cast<int>(std::max(a.size(), b.size()));
  const int left_missing = rank - left.rank();
  const int right_missing = rank - static_cast<int>(b.size());
  for (int i = 0; i < rank; ++i) {
    const std::int64_t x = i < left_missing ? 1 : left[i - left_missing];
    const std::int64_t y = i < right_missing ? 1 : b[static_cast<std::size_t>(i - right_missing)];
    if (x != y && x != 1 && y != 1) {
      return ValueError("shapes ", left.view(), " and ", b, " do not broadcast: ", x, " and ", y, " at axis ",
                        i, " of the result");
    }
    dims.push_back(x == 1 ? y : x);
  }
  *result = dims;
  return Status();
}

Status MatMulDims(ShapeView a, ShapeView b, Dims* result) {
  if (a.empty() || b.empty()) return ValueError("a has shape ", a, " and b ", b, ", expected rank 1 or more");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  const std::int64_t depth = a[a.size() - 1];
  const std::int64_t b_depth = b[column ? 0 : b.size() - 2];
  if (depth != b_depth) {
    return ValueError("a has shape ", a, " and b ", b, ": the inner dimensions ", depth, " and ", b_depth,
                      " differ");
  }
  const ShapeView a_batch(a.data(), row ? 0 : a.size() - 2);
  const ShapeView b_batch(b.data(), column ? 0 : b.size() - 2);
  if (Status s = BroadcastDims(a_batch, b_batch, result); !s.ok()) return s;
  if (!row) result->push_back(a[a.size() - 2]);
  if (!column) result->push_back(b[b.size() - 1]);
  return Status();
}

Status MarkAxes(const std::vector<std::int64_t>& axes, int rank, bool (&reduced)[kMaxRank]) {
  std::fill(reduced, reduced + kMaxRank, axes.empty());
  for (std::int64_t axis : axes) {
    int normalized = 0;
    if (Status s = NormalizeAxis(axis, rank, &normalized); !s.ok()) return s;
    if (reduced[normalized]) return ValueError("axis ", normalized, " is named twice");
    reduced[normalized] = true;
  }
  return Status();
}

Dims ReducedDims(ShapeView x, const bool (&reduced)[kMaxRank], bool keepdims) {
  Dims dims;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) dims.push_back(x[i]);
    if (reduced[i] && keepdims) dims.push_back(1);
  }
  return dims;
}

Status PermutedDims(ShapeView x, const std::vector<std::int64_t>& perm, Dims* order, Dims* result) {
  const int rank = static_cast<int>(x.size());
  *order = Dims();
  *result = Dims();
  bool seen[kMaxRank] = {};
  if (!perm.empty() && perm.size() != x.size()) {
    return ValueError("perm has ", perm.size(), " axes, x has shape ", x);
  }
  for (int i = 0; i < rank; ++i) {
    const std::int64_t axis = perm.empty() ? rank - 1 - i : perm[static_cast<std::size_t>(i)];
    if (axis < 0 || axis >= rank || seen[axis]) {
      return ValueError("perm is ", ShapeView(perm.data(), perm.size()), ", expected each axis from 0 to ",
                        rank - 1, " once");
    }
    seen[axis] = true;
    order->push_back(axis);
    result->push_back(x[static_cast<std::size_t>(axis)]);
  }
  return Status();
}

Status ConcatDims(ShapeView sum, ShapeView next, int axis, int input, Dims* result) {
  bool matches = sum.size() == next.size();
  for (std::size_t i = 0; matches && i < sum.size(); ++i) {
    matches = static_cast<int>(i) == axis || sum[i] == next[i];
  }
  if (!matches) {
    return ValueError("input ", input, " has shape ", next, ", expected ", sum, " but for axis ", axis);
  }
  *result = Dims(sum);
  (*result)[axis] += next[static_cast<std::size_t>(axis)];
  return Status();
}

Status GatherDims(ShapeView x, ShapeView indices, int axis, Dims* result) {
  if (x.size() - 1 + indices.size() > kMaxRank) {
    return ValueError("x has shape ", x, " and indices ", indices, ": the result's rank is over ", kMaxRank);
  }
  *result = Dims();
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    if (i != axis) {
      result->push_back(x[static_cast<std::size_t>(i)]);
      continue;
    }
    for (std::int64_t dim : indices) result->push_back(dim);
  }
  return Status();
}

Status CheckInPlace(const char* out_name, TensorView out, const char* name, TensorView input) {
  const Extent a = ExtentOf(out);
  const Extent b = ExtentOf(input);
  if (a.begin >= b.end || b.begin >= a.end || SameElements(out, input)) return Status();
  return ValueError(out_name, " overlaps ", name, " without being the same elements");
}

}  // namespace rewire::kernel::cpu

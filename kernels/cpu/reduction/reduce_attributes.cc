// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewire/kernels/cpu/reduction/reduce.h"

namespace rewire::kernel::cpu {

Status ReduceAttributes::Check(TensorView x, const std::optional<TensorView>& tensor, TensorView out,
                               bool (&reduced)[kMaxKernelRank], bool any_dtype) const {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).NoOverlap("out", out, "x", x);
  if (!any_dtype) checks.SameDType("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  Dims expected;
  if (Status s = Resolve(x.dims(), tensor, reduced, &expected); !s.ok()) return s;
  return CheckShape("out", out, expected.view());
}

Status ReduceAttributes::Resolve(ShapeView x, const std::optional<TensorView>& tensor,
                                 bool (&reduced)[kMaxKernelRank], Dims* result) const {
  Dims given;
  ShapeView named(axes.data(), axes.size());
  if (tensor) {
    if (!axes.empty()) return ValueError("axes are given both as an attribute and as an argument");
    if (Status s = ReadInts("axes", *tensor, &given); !s.ok()) return s;
    named = given.view();
  }
  if (Status s = MarkAxes(named, static_cast<int>(x.size()), reduced); !s.ok()) return s;
  if (named.empty()) std::fill(reduced, reduced + kMaxKernelRank, !keep_without_axes);
  *result = ReducedDims(x, reduced, keepdims);
  return Status();
}

}  // namespace rewire::kernel::cpu

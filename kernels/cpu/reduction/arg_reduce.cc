// SPDX-License-Identifier: Apache-2.0
// Positions of extremes along an axis.
#include <algorithm>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

template <bool kMax>
struct ArgReduce {
  static constexpr const char* kName = kMax ? names::kArgMax : names::kArgMin;
  std::int64_t axis = 0;
  bool keepdims = true;
  bool last = false;
  static Status Make(Attributes& attributes, ArgReduce* reduce) {
    reduce->axis = attributes.Int("axis", 0);
    reduce->keepdims = attributes.Bool("keepdims", true);
    reduce->last = attributes.Bool("select_last_index", false);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    bool reduced[kMaxKernelRank] = {};
    reduced[along] = true;
    if (Status s = CheckShape("out", out, ReducedDims(x.dims(), reduced, keepdims).view()); !s.ok()) return s;
    if (x.dim(along) == 0)
      return ValueError("x has shape ", x.dims(), ": nothing to choose from along axis ", along);
    return ForType(Numbers(), "x", x, [&](auto in_tag) {
      return ForType(Indices(), "out", out, [&](auto out_tag) {
        return Run<typename decltype(in_tag)::type, typename decltype(out_tag)::type>(x, along, out);
      });
    });
  }

 private:
  template <typename T, typename I>
  Status Run(TensorView x, int along, TensorView out) const {
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim());
    const std::int64_t count = x.dim(along);
    return ParallelFor(out.size(), GrainOf(kGrain, count),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           const T* from = x.data<T>() + i / inner * count * inner + i % inner;
                           std::int64_t best = 0;
                           const bool done = pace.For(count, 1, [&](std::int64_t first, std::int64_t last) {
                             for (std::int64_t k = first; k < last; ++k) {
                               if (k > 0 && Beats(from[k * inner], from[best * inner])) best = k;
                             }
                           });
                           if (!done) return;
                           out.data<I>()[i] = static_cast<I>(best);
                         }
                       });
  }

  // Whether a later element takes the place of the best so far. NaN is the extreme, as numpy has it.
  template <typename T>
  bool Beats(T later, T best) const {
    const bool both_nan = later != later && best != best;
    if (later == best || both_nan) return last;
    if (best != best) return false;
    return later != later || (kMax ? later > best : later < best);
  }
};

}  // namespace

std::span<const Kernel> ArgReduceKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ArgReduce<true>>(
          "x -> out", "x f32 f64 i64 i32 i8 u8; out i64 i32", "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the largest element, the first of several; NaN counts as largest"),
      Describe<ArgReduce<false>>(
          "x -> out", "x f32 f64 i64 i32 i8 u8; out i64 i32", "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the smallest element, the first of several; NaN counts as smallest"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

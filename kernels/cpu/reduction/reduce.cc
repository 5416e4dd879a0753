// SPDX-License-Identifier: Apache-2.0
// Sums, products, means and extremes along axes.
#include <algorithm>

#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/cpu/reduction/log_sum_exp.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/cpu/reduction/reduce_rows.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

Layout<2> ReduceLayout(ShapeView dims, const bool (&reduced)[kMaxKernelRank], std::int64_t* count) {
  const int rank = static_cast<int>(dims.size());
  *count = 1;
  std::int64_t steps[kMaxKernelRank][2];
  std::int64_t out_step = 1;
  std::int64_t in_step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const std::int64_t dim = dims[static_cast<std::size_t>(i)];
    steps[i][0] = reduced[i] ? 0 : out_step;
    steps[i][1] = in_step;
    in_step *= dim;
    (reduced[i] ? *count : out_step) *= dim;
  }
  Layout<2> layout;
  for (int i = 0; i < rank; ++i) layout.Append(dims[static_cast<std::size_t>(i)], steps[i]);
  layout.Finish();
  return layout;
}

namespace {

using reduction::L1;
using reduction::L2;
using reduction::Largest;
using reduction::Mean;
using reduction::ProductOf;
using reduction::Smallest;
using reduction::Sum;
using reduction::SumOfSquares;

template <typename Op>
struct Reduce {
  static constexpr const char* kName = Op::kName;
  ReduceAttributes attributes;
  static Status Make(Attributes& given, Reduce* reduce) {
    reduce->attributes.Read(given);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> axes, TensorView out) const {
    bool reduced[kMaxKernelRank];
    const bool widens = std::is_same_v<Op, Mean> && x.Is<BFloat16>() && out.Is<float>();
    if (Status s = attributes.Check(x, axes, out, reduced, widens); !s.ok()) return s;
    if constexpr (std::is_same_v<Op, Mean>) {
      if (widens) return Run<float, BFloat16>(x, reduced, out);
    }
    return ForType(Numbers(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, reduced, out); });
  }

 private:
  template <typename T, typename In = T>
  static Status Run(TensorView x, const bool (&reduced)[kMaxKernelRank], TensorView out) {
    std::int64_t count = 1;
    const Layout<2> layout = ReduceLayout(x.dims(), reduced, &count);
    using Rows = typename Op::template Rows<T>;
    using Result = std::conditional_t<Rows::kSignless, Signless<T>, T>;
    using Element = std::conditional_t<Rows::kSignless, Signless<In>, In>;
    T* to = out.data<T>();
    const auto* from = reinterpret_cast<const Element*>(x.data<In>());
    auto* results = reinterpret_cast<Result*>(to);
    const std::int64_t size = out.size();
    if (Status s = FillAll(results, size, Rows::template Identity<Result>()); !s.ok()) return s;
    if (x.size() != 0) {
      Status s = ForResultsApart(
          layout, [&](const Layout<2>& part, std::int64_t out_offset, std::int64_t in_offset, Pace& pace) {
            reduction::ReduceRows<Rows>(part, results + out_offset, from + in_offset, pace);
          });
      if (!s.ok()) return s;
    }
    return SerialFor(size, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = Op::Finish(to[i], count);
    });
  }
};

constexpr const char kReduceAttributes[] =
    "axes = those of the argument or all, keepdims = 1, noop_with_empty_axes = 0";

template <typename Op>
constexpr Kernel Row(const char* meaning, const char* dtypes = "x, out f32 f64 i64 i32 i8 u8; axes i64 i32") {
  return Describe<Reduce<Op>>("x, axes? -> out", dtypes, kReduceAttributes, meaning);
}

}  // namespace

std::span<const Kernel> ReduceKernels() {
  static constexpr Kernel kKernels[] = {
      Row<Sum>("sum; integers wrap"),
      Row<Mean>("mean; of integers truncated toward zero; NaN of no floats, 0 of no integers; of bf16 in f32",
                "x f32 f64 i64 i32 i8 u8 bf16; out f32 f64 i64 i32 i8 u8; axes i64 i32"),
      Row<ProductOf>("product; integers wrap"),
      Row<Largest>("largest, NaN if one is; of nothing -inf or the least integer"),
      Row<Smallest>("smallest, NaN if one is; of nothing inf or the greatest integer"),
      Row<SumOfSquares>("sum of squares; integers wrap"),
      Row<L1>("sum of magnitudes; integers wrap"),
      Row<L2>("square root of the sum of squares"),
      Describe<LogSumExp>("x, axes? -> out", "x, out f32 f64 i64 i32; axes i64 i32", kReduceAttributes,
                          "logarithm of the sum of exp(x); of integers truncated toward zero"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

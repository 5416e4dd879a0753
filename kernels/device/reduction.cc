// SPDX-License-Identifier: Apache-2.0
// Many elements to one along axes.
#include <algorithm>

#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/moving.h"
#include "rewire/kernels/device/registry.h"

using ReductionArguments = ::Reduction;

namespace rewire::kernel::device {
namespace {

// The axes that stay and those that are reduced, neighbors joined.
ReductionArguments Arrange(ShapeView dims, const bool (&reduced)[cpu::kMaxKernelRank]) {
  const Dims steps = cpu::DenseStrides(dims);
  Moving kept, gone;
  for (int i = 0; i < steps.rank(); ++i) {
    (reduced[i] ? gone : kept).Append(dims[static_cast<std::size_t>(i)], steps[i], 0);
  }
  ReductionArguments arguments{};
  arguments.rank = kept.move.rank;
  std::copy_n(kept.move.dims, arguments.rank, arguments.dims);
  std::copy_n(kept.move.from_steps, arguments.rank, arguments.steps);
  arguments.reduced_rank = gone.move.rank;
  std::copy_n(gone.move.dims, arguments.reduced_rank, arguments.reduced_dims);
  std::copy_n(gone.move.from_steps, arguments.reduced_rank, arguments.reduced_steps);
  arguments.count = static_cast<int>(gone.count);
  return arguments;
}

// StartOf gives the number that a reduction of integers begins with.
std::int64_t StartOf(int operation, IntegerType type) {
  switch (operation) {
    case kMost:
      return LeastOf(type);
    case kLeast:
      return MostOf(type);
    case kProduct:
      return 1;
    default:
      return 0;
  }
}

template <typename Op>
struct Reduce {
  static constexpr const char* kName = Op::kName;
  cpu::ReduceAttributes attributes;
  static Status Make(Attributes& given, Reduce* reduce) {
    reduce->attributes.Read(given);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("x", x, Op::kOperation == kNorm ? kReals : kReals | kReduced, &type);
        !s.ok())
      return s;
    bool reduced[cpu::kMaxKernelRank] = {};
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), std::nullopt, reduced, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    const ReductionArguments arguments = Arrange(x.dims(), reduced);
    // Rows of contiguous elements are worth a group each.
    constexpr int kLeastRow = 32;
    const bool rows = arguments.reduced_rank == 1 && arguments.reduced_steps[0] == 1 &&
                      arguments.count >= kLeastRow && arguments.rank <= 1;
    // Single threads would leave most of a GPU idle. Rows have a group anyway.
    const int many = rows ? 1024 : 128;
    constexpr std::int64_t kFewResults = 16384;
    const bool wide = type == kTypeReal && arguments.count >= many && out.size() <= kFewResults;
    Call call = ElementCall(x, type, Program::kReduction,
                            wide   ? "reduce_wide"
                            : rows ? "reduce_rows"
                                   : "reduce",
                            rows ? "integer_reduce_rows" : "integer_reduce");
    call.Tensor(x).Tensor(out);
    if (wide || !rows) call.Value(arguments);
    if (type == kTypeReal) {
      call.Int(Op::kOperation);
    } else {
      call.Int(type).Int(Op::kOperation).Value(StartOf(Op::kOperation, type));
    }
    call.Int(rows && !wide ? arguments.count : out.size());
    if (wide) return out.size() == 0 ? Status() : call.Groups(out.size(), 1, 1, 256, 1);
    return rows ? call.Rows(out.size()) : call.Each(out.size());
  }
};

#define REWIRE_REDUCTION(Type, name, code)                       \
  struct Type {                                                  \
    static constexpr const char* kName = names::kOnDevice<name>; \
    static constexpr int kOperation = code;                      \
  };
REWIRE_REDUCTION(Sum, names::kReduceSum, kSum)
REWIRE_REDUCTION(Mean, names::kReduceMean, kMean)
REWIRE_REDUCTION(Largest, names::kReduceMax, kMost)
REWIRE_REDUCTION(Smallest, names::kReduceMin, kLeast)
REWIRE_REDUCTION(ProductOf, names::kReduceProd, kProduct)
REWIRE_REDUCTION(SumOfSquares, names::kReduceSumSquare, kSumOfSquares)
REWIRE_REDUCTION(SumOfAbsolutes, names::kReduceL1, kSumOfAbs)
REWIRE_REDUCTION(Euclidean, names::kReduceL2, kNorm)
#undef REWIRE_REDUCTION

template <bool kLeastElement>
struct ArgReduce : contract::ArgReduceAttributes {
  static constexpr const char* kName =
      kLeastElement ? names::kOnDevice<names::kArgMin> : names::kOnDevice<names::kArgMax>;
  static Status Make(Attributes& attributes, ArgReduce* reduce) {
    reduce->Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("x", x, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{}, index{};
    if (Status s = ElementTypeOf("x", x, kReals | kReduced, &type); !s.ok()) return s;
    if (Status s = ElementTypeOf("out", out, kIndices, &index); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    bool reduced[cpu::kMaxKernelRank] = {};
    reduced[along] = true;
    const Dims expected = cpu::ReducedDims(x.dims(), reduced, keepdims);
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (x.dim(along) == 0) return ValueError("x has no elements along axis ", along);
    Call call = ElementCall(x, type, Program::kReduction, "arg_reduce", "integer_arg_reduce");
    call.Tensor(x).Tensor(out);
    if (type != kTypeReal) call.Int(type);
    call.Int(index).Int(x.dim(along)).Int(cpu::Product(x.dims(), along + 1, x.ndim()));
    call.Int(kLeastElement ? 1 : 0).Int(last ? 1 : 0).Int(out.size());
    return call.Each(out.size());
  }
};

template <typename Op>
constexpr Kernel DescribeReduction(const char* dtypes, const char* meaning) {
  return Describe<Reduce<Op>>("x -> out", dtypes, "axes = all, keepdims = 1, noop_with_empty_axes = 0",
                              meaning);
}
constexpr const char kReducible[] = "f32 f16 i64 i32 i8 u8";
constexpr const char kExtremes[] = "x f32 f16 i64 i32 i8 u8; out i64 i32";

}  // namespace

std::span<const Kernel> ReductionKernels() {
  static constexpr Kernel kKernels[] = {
      DescribeReduction<Sum>(kReducible, "sum; integers wrap"),
      DescribeReduction<Mean>(kReducible, "mean; NaN of nothing; of integers truncated, 0 of nothing"),
      DescribeReduction<Largest>(kReducible, "largest, NaN if one is"),
      DescribeReduction<Smallest>(kReducible, "smallest, NaN if one is"),
      DescribeReduction<ProductOf>(kReducible, "product; integers wrap"),
      DescribeReduction<SumOfSquares>(kReducible, "sum of squares; integers wrap"),
      DescribeReduction<SumOfAbsolutes>(kReducible, "sum of absolute values; integers wrap"),
      DescribeReduction<Euclidean>("f32 f16", "square root of the sum of squares"),
      Describe<ArgReduce<false>>(
          "x -> out", kExtremes, "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the largest element, the first of several; NaN counts as largest"),
      Describe<ArgReduce<true>>(
          "x -> out", kExtremes, "axis = 0, keepdims = 1, select_last_index = 0",
          "the position of the smallest element, the first of several; NaN counts as smallest"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

// SPDX-License-Identifier: Apache-2.0
// Many elements to one along axes.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"

namespace rewire::aot {
namespace {

// Adjacent axes as one: x is contiguous.
void Append(std::int64_t dim, std::int64_t step, Dims* dims, Dims* steps) {
  if (dim == 1) return;
  if (!dims->empty() && steps->back() == step * dim) {
    dims->back() *= dim;
    steps->back() = step;
    return;
  }
  dims->push_back(dim);
  steps->push_back(step);
}

// Whether the library reduces integers by this kernel.
bool HasIntegers(const EmbeddedCall& call) {
  const std::string_view name = call.name();
  return name == names::kReduceSum || name == names::kReduceMean || name == names::kReduceProd ||
         name == names::kReduceMax || name == names::kReduceMin;
}

Result<std::string> Reduce(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  const bool is_integer = dtype == kInt8 || dtype == kUInt8 || dtype == kInt32 || dtype == kInt64;
  const DLDataType taken = is_integer && HasIntegers(call) ? dtype : kFloat32;
  if (Status need = call.NeedInput(0, taken); !need) return need;
  if (Status need = call.NeedOutput(taken); !need) return need;
  const Dims& x = call.InputDims(0);
  const auto given = call.Read<contract::ReduceAttributes>();
  Dims axes = given.axes;
  if (call.Has(1)) {
    if (!call.IntegersOf(1)) return call.Refuse("its axes are known only when the program runs");
    axes = *call.IntegersOf(1);
  }
  if (axes.empty() && given.keep_without_axes) return call.Refuse("it reduces along no axis");
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(x.size());
  }
  const Dims strides = StridesOf(x);
  Dims kept;
  Dims kept_steps;
  Dims reduced;
  Dims reduced_steps;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool is_reduced =
        axes.empty() || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (is_reduced) {
      Append(x[i], strides[i], &reduced, &reduced_steps);
    } else {
      Append(x[i], strides[i], &kept, &kept_steps);
    }
  }
  if (kept.size() > kMostEmbeddedRank || reduced.size() > kMostEmbeddedRank)
    return call.Refuse("it has more than 8 axes");
  const std::string sizes = call.definitions().Struct(
      "reduce", fmt::format("{{{}, {}, {}, {}, {}, {}}}", kept.size(), reduced.size(), Braced(kept),
                            Braced(kept_steps), Braced(reduced), Braced(reduced_steps)));
  return fmt::format("rewire_embedded_{}_{}(&{}, {}, {});", names::Stem(call.name()), DTypeName(taken), sizes,
                     call.Input(0), call.Output());
}

Result<std::string> ArgReduce(EmbeddedCall& call) {
  const Value& x = call.InputValue(0);
  const DLDataType out = call.OutputValue().dtype;
  if (x.dtype != kFloat32 && x.dtype != kInt8 && x.dtype != kUInt8)
    return call.Refuse(fmt::format("its input is {}", TensorText(x)));
  const auto given = call.Read<contract::ArgReduceAttributes>();
  const Result<std::size_t> axis = call.Axis(given.axis, x.dims.size());
  if (!axis) return Forward(axis);
  const std::string sizes = call.definitions().Struct(
      "arg_reduce",
      fmt::format("{{{{{}, {}, {}}}, {}, {}}}", Product(x.dims, 0, *axis), x.dims[*axis],
                  Product(x.dims, *axis + 1, x.dims.size()), given.last ? 1 : 0, out == kInt64 ? 1 : 0));
  return fmt::format("rewire_embedded_{}_{}(&{}, {}, {});", names::Stem(call.name()), DTypeName(x.dtype),
                     sizes, call.Input(0), call.Output());
}

constexpr EmbeddedKernel kReductionKernels[] = {
    {names::kArgMax, 1, 0, ArgReduce},       {names::kArgMin, 1, 0, ArgReduce},
    {names::kReduceSum, 1, 0, Reduce},       {names::kReduceMean, 1, 0, Reduce},
    {names::kReduceProd, 1, 0, Reduce},      {names::kReduceMax, 1, 0, Reduce},
    {names::kReduceMin, 1, 0, Reduce},       {names::kReduceSumSquare, 1, 0, Reduce},
    {names::kReduceL1, 1, 0, Reduce},        {names::kReduceL2, 1, 0, Reduce},
    {names::kReduceLogSumExp, 1, 0, Reduce},
};

}  // namespace

std::span<const EmbeddedKernel> ReductionKernels() { return kReductionKernels; }

}  // namespace rewire::aot

// SPDX-License-Identifier: Apache-2.0
// Elements chosen by index tensors.
#include <algorithm>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/indexing/tuple_dims.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/moving.h"
#include "rewire/kernels/device/registry.h"
#include "rewire/kernels/device/tuples.h"

namespace rewire::kernel::device {
namespace {

// The checks that all of them make of x, its indices and out.
Status CheckGather(TensorView x, TensorView indices, TensorView out, IntegerType* type, Form* form) {
  if (Status s = CheckMove(x, out); !s.ok()) return s;
  if (Status s = DeviceChecks().Beside("indices", indices, out).Take(); !s.ok()) return s;
  if (Status s = ElementTypeOf("indices", indices, kIndices, type); !s.ok()) return s;
  return MoveForm("x", x, form);
}

// `moving` leads from out to x, without the axis, and to the indices.
Status RunGather(TensorView x, TensorView indices, TensorView out, int along, const Moving& moving,
                 IntegerType type, Form form) {
  if (out.size() == 0) return Status();
  if (x.dim(along) == 0) return ValueError("x has no elements along axis ", along);
  Call call(out, Program::kIndexing, form, "gather");
  call.Tensor(x).Tensor(indices).Tensor(out).Value(moving.move).Int(type).Int(x.dim(along));
  call.Int(cpu::Product(x.dims(), along + 1, x.ndim())).Int(out.size());
  return call.Each(out.size());
}

struct Gather : WithAttributes<contract::GatherAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kGather>;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    IntegerType type{};
    Form form{};
    if (Status s = CheckGather(x, indices, out, &type, &form); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::GatherDims(x.dims(), indices.dims(), along, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t inner = cpu::Product(x.dims(), along + 1, x.ndim());
    Moving moving;
    moving.Append(cpu::Product(x.dims(), 0, along), cpu::Times(inner, x.dim(along)), 0);
    moving.Append(indices.size(), 0, 1);
    moving.Append(inner, 1, 0);
    return RunGather(x, indices, out, along, moving, type, form);
  }
};

struct GatherElements : WithAttributes<contract::GatherAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kGatherElements>;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    IntegerType type{};
    Form form{};
    if (Status s = CheckGather(x, indices, out, &type, &form); !s.ok()) return s;
    if (Status s = cpu::CheckRank("indices", indices, x.ndim()); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, indices.dims()); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    if (Status s = cpu::CheckElementIndices(x.dims(), indices.dims(), along); !s.ok()) return s;
    const Dims of_x = cpu::DenseStrides(x.dims());
    const Dims of_out = cpu::DenseStrides(out.dims());
    Moving moving;
    for (int i = 0; i < x.ndim(); ++i) moving.Append(out.dim(i), i == along ? 0 : of_x[i], of_out[i]);
    return RunGather(x, indices, out, along, moving, type, form);
  }
};

struct GatherND : WithAttributes<contract::GatherNdAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kGatherNd>;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    IntegerType type{};
    Form form{};
    if (Status s = CheckGather(x, indices, out, &type, &form); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::GatherNDDims(x.dims(), indices.dims(), batch_dims, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (x.size() == 0) return ValueError("x has shape ", x.dims(), ", which has no slice for an index");
    Call call(out, Program::kIndexing, form, "gather_slices");
    call.Tensor(x).Tensor(indices).Tensor(out).Value(TuplesOf(x.dims(), indices.dims(), batch_dims));
    call.Int(type).Int(out.size());
    return call.Each(out.size());
  }
};

struct OneHot : WithAttributes<contract::OneHotAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kOneHot>;
  Status operator()(TensorView indices, TensorView values, TensorView out) const {
    constexpr std::int64_t kTwo = 2;
    DeviceChecks checks;
    checks.On("out", out).Beside("indices", indices, out).Beside("values", values, out);
    checks.SameDType("values", values, "out", out).Shape("values", values, ShapeView(&kTwo, 1));
    if (Status s = checks.Take(); !s.ok()) return s;
    IntegerType type{};
    if (Status s = ElementTypeOf("indices", indices, kIntegers, &type); !s.ok()) return s;
    if (Status s = cpu::CheckRank("out", out, indices.ndim() + 1); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, out.ndim(), &along); !s.ok()) return s;
    Dims expected(indices.dims());
    expected.insert(along, out.dim(along));
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    Form form{};
    if (Status s = MoveForm("values", values, &form); !s.ok()) return s;
    Call call(out, Program::kIndexing, form, "mark");
    call.Tensor(indices).Tensor(values).Tensor(out).Int(type).Int(out.dim(along));
    call.Int(cpu::Product(out.dims(), along + 1, out.ndim())).Int(out.size());
    return call.Each(out.size());
  }
};

}  // namespace

Tuples TuplesOf(ShapeView x, ShapeView indices, std::int64_t batch_dims) {
  const int batch = static_cast<int>(batch_dims);
  const int rank = static_cast<int>(x.size());
  Tuples tuples{};
  tuples.width = static_cast<int>(indices[indices.size() - 1]);
  tuples.run = static_cast<int>(cpu::Product(x, batch + tuples.width, rank));
  const std::int64_t count = cpu::Product(indices, 0, static_cast<int>(indices.size()) - 1);
  const std::int64_t batches = std::max<std::int64_t>(1, cpu::Product(x, 0, batch));
  tuples.per_batch = static_cast<int>(std::max<std::int64_t>(1, count / batches));
  tuples.batch_step = static_cast<int>(cpu::Product(x, batch, rank));
  int step = 1;
  for (int k = tuples.width - 1; k >= 0; --k) {
    tuples.dims[k] = static_cast<int>(x[static_cast<std::size_t>(batch) + static_cast<std::size_t>(k)]);
    tuples.steps[k] = step;
    step *= tuples.dims[k];
  }
  return tuples;
}

std::span<const Kernel> GatherKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Gather>("x, indices -> out", "x, out any of at most 8 bytes; indices i64 i32", "axis = 0",
                       "slices of x along the axis, by index; negative ones count from the end"),
      Describe<GatherElements>(
          "x, indices -> out", "x, out any of at most 8 bytes; indices i64 i32", "axis = 0",
          "for each index the element of x at its place but for the axis, where the index says"),
      Describe<GatherND>("x, indices -> out", "x, out any of at most 8 bytes; indices i64 i32",
                         "batch_dims = 0",
                         "the slices of x that index tuples, the last axis of indices, name"),
      Describe<OneHot>(
          "indices, values -> out", "indices i64 i32 i16 i8 u16 u8; values, out any of at most 8 bytes",
          "axis = -1",
          "values[1] where the index is the position along the axis, which is new and whose length out "
          "gives, else values[0]; indices out of range mark nothing"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

// SPDX-License-Identifier: Apache-2.0
// Updates of elements and slices at positions that index tensors give.
#include <algorithm>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/indexing/tuple_dims.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/moving.h"
#include "rewire/kernels/device/registry.h"
#include "rewire/kernels/device/tuples.h"

using ScatterArguments = ::Scatter;

namespace rewire::kernel::device {
namespace {

using cpu::ScatterReduction;

// The device code numbers them as kernels/cpu does.
static_assert(int{kScatterSet} == static_cast<int>(ScatterReduction::kNone));
static_assert(int{kScatterMultiply} == static_cast<int>(ScatterReduction::kMul));
static_assert(int{kScatterMost} == static_cast<int>(ScatterReduction::kMax));

// The type that elements are updated as. Where nothing is computed it is an integer of their size.
Status UpdateType(TensorView x, ScatterReduction reduction, IntegerType* type) {
  if (reduction == ScatterReduction::kNone) {
    Form form{};
    if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
    *type = form == Form::kBytes1   ? kTypeU8
            : form == Form::kBytes2 ? kTypeU16
            : form == Form::kBytes4 ? kTypeI32
                                    : kTypeI64;
    return Status();
  }
  if (x.dtype().code == kDLFloat && x.dtype().bits == 16)
    return TypeError("x is f16, expected one of f32, i64, i32, i8, u8");
  return ElementTypeOf("x", x, kReals | kReduced, type);
}

// The checks that both make, and what elements and indices are.
Status CheckScatter(TensorView x, TensorView indices, TensorView updates, TensorView out,
                    ScatterReduction reduction, ScatterArguments* arguments) {
  DeviceChecks checks;
  checks.On("out", out).Beside("x", x, out).Beside("indices", indices, out).Beside("updates", updates, out);
  checks.SameDType("updates", updates, "x", x).SameDType("out", out, "x", x).Shape("out", out, x.dims());
  if (Status s = checks.Take(); !s.ok()) return s;
  IntegerType type{}, index_type{};
  if (Status s = UpdateType(x, reduction, &type); !s.ok()) return s;
  if (Status s = ElementTypeOf("indices", indices, kIndices, &index_type); !s.ok()) return s;
  arguments->type = type;
  arguments->index_type = index_type;
  arguments->operation = static_cast<int>(reduction);
  return Status();
}

// Lines of updates that are few are shared by some threads. All of them read all indices of the line.
int SharersOf(std::int64_t lines, std::int64_t length, std::int64_t places) {
  constexpr std::int64_t kThreads = 1024;
  const std::int64_t most = std::min(length, places);
  return static_cast<int>(std::clamp<std::int64_t>(kThreads / lines, 1, std::max<std::int64_t>(most, 1)));
}

struct ScatterElements : contract::GatherAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kScatterElements>;
  ScatterReduction reduction = ScatterReduction::kNone;
  static Status Make(Attributes& attributes, ScatterElements* scatter) {
    scatter->Read(attributes);
    scatter->reduction = cpu::ReadScatterReduction(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView updates, TensorView out) const {
    ScatterArguments arguments{};
    if (Status s = CheckScatter(x, indices, updates, out, reduction, &arguments); !s.ok()) return s;
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    DeviceChecks checks;
    checks.Shape("updates", updates, indices.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = cpu::CheckRank("indices", indices, x.ndim()); !s.ok()) return s;
    if (Status s = cpu::CheckElementIndices(x.dims(), indices.dims(), along); !s.ok()) return s;
    if (Status s = CopyWhole(x, out); !s.ok()) return s;
    if (updates.size() == 0 || out.size() == 0) return Status();
    const Dims of_updates = cpu::DenseStrides(updates.dims());
    const Dims of_out = cpu::DenseStrides(out.dims());
    Moving lines;
    for (int i = 0; i < x.ndim(); ++i) {
      if (i != along) lines.Append(updates.dim(i), of_updates[i], of_out[i]);
    }
    arguments.length = static_cast<int>(updates.dim(along));
    arguments.update_step = static_cast<int>(of_updates[along]);
    arguments.places = static_cast<int>(out.dim(along));
    arguments.place_step = static_cast<int>(of_out[along]);
    arguments.sharers = SharersOf(lines.count, updates.dim(along), out.dim(along));
    const std::int64_t threads = lines.count * arguments.sharers;
    Call call(out, Program::kScatter, Form::kF32, "scatter_elements");
    call.Tensor(indices).Tensor(updates).Tensor(out).Value(lines.move).Value(arguments).Int(threads);
    return call.Each(threads);
  }
};

struct ScatterND {
  static constexpr const char* kName = names::kOnDevice<names::kScatterNd>;
  ScatterReduction reduction = ScatterReduction::kNone;
  static Status Make(Attributes& attributes, ScatterND* scatter) {
    scatter->reduction = cpu::ReadScatterReduction(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView updates, TensorView out) const {
    ScatterArguments arguments{};
    if (Status s = CheckScatter(x, indices, updates, out, reduction, &arguments); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::GatherNDDims(x.dims(), indices.dims(), 0, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("updates", updates, expected.view()); !s.ok()) return s;
    if (Status s = CopyWhole(x, out); !s.ok()) return s;
    if (updates.size() == 0 || out.size() == 0) return Status();
    const Tuples tuples = TuplesOf(x.dims(), indices.dims(), 0);
    const std::int64_t count = updates.size() / tuples.run;
    arguments.length = static_cast<int>(count);
    arguments.sharers = SharersOf(tuples.run, count, out.size() / tuples.run);
    const std::int64_t threads = std::int64_t{tuples.run} * arguments.sharers;
    Call call(out, Program::kScatter, Form::kF32, "scatter_slices");
    call.Tensor(indices).Tensor(updates).Tensor(out).Value(tuples).Value(arguments).Int(threads);
    return call.Each(threads);
  }
};

constexpr const char kUpdated[] =
    "x, updates, out any of at most 8 bytes (reductions f32 i64 i32 i8 u8); indices i64 i32";

}  // namespace

std::span<const Kernel> ScatterKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ScatterElements>("x, indices, updates -> out over x", kUpdated,
                                "axis = 0, reduction = none, add, mul, min or max",
                                "x with each update at its place but for the axis, where the index says"),
      Describe<ScatterND>("x, indices, updates -> out over x", kUpdated,
                          "reduction = none, add, mul, min or max",
                          "x with the slices that index tuples name updated"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

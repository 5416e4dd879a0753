// SPDX-License-Identifier: Apache-2.0
// Elements in another order or place. Most are one or several strided moves.
#include <algorithm>
#include <vector>

#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/movement/sequence_axes.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/moving.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

struct Copy {
  static constexpr const char* kName = names::kOnDevice<names::kCopy>;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.size() != out.size()) {
      return ValueError("out has shape ", out.dims(), ", x has shape ", x.dims(), " with another size");
    }
    return CopyWhole(x, out);
  }
};

struct Transpose : WithAttributes<contract::TransposeAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kTranspose>;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    Dims order, expected;
    if (Status s = cpu::PermutedDims(x.dims(), perm, &order, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    const Dims from = cpu::DenseStrides(x.dims());
    const Dims to = cpu::DenseStrides(out.dims());
    Moving moving;
    for (int i = 0; i < out.ndim(); ++i) {
      moving.Append(out.dim(i), from[static_cast<int>(order[i])], to[i]);
    }
    return moving.Run(x, out);
  }
};

struct Expand {
  static constexpr const char* kName = names::kOnDevice<names::kExpand>;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    Dims both;
    const Status broadcast = cpu::BroadcastDims(x.dims(), out.dims(), &both);
    if (!broadcast.ok() || both.view() != out.dims()) {
      return ValueError("x has shape ", x.dims(), ", which does not broadcast to ", out.dims());
    }
    const Dims from = cpu::DenseStrides(x.dims());
    const Dims to = cpu::DenseStrides(out.dims());
    Moving moving;
    for (int i = 0; i < out.ndim(); ++i) {
      const int own = i - (out.ndim() - x.ndim());
      moving.Append(out.dim(i), own < 0 || x.dim(own) == 1 ? 0 : from[own], to[i]);
    }
    return moving.Run(x, out);
  }
};

ShapeView ViewOf(const std::vector<std::int64_t>& list) { return ShapeView(list.data(), list.size()); }

Status RunSlice(TensorView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                TensorView out) {
  if (Status s = CheckMove(x, out); !s.ok()) return s;
  cpu::SliceRange range;
  if (Status s = cpu::SliceDims(x.dims(), starts, ends, axes, steps, &range); !s.ok()) return s;
  if (Status s = cpu::CheckShape("out", out, range.dims.view()); !s.ok()) return s;
  if (out.size() == 0) return Status();
  const Dims from = cpu::DenseStrides(x.dims());
  const Dims to = cpu::DenseStrides(out.dims());
  Moving moving;
  std::int64_t first = 0;
  for (int i = 0; i < out.ndim(); ++i) {
    first += range.start[i] * from[i];
    moving.Append(out.dim(i), out.dim(i) == 1 ? 0 : from[i] * range.step[i], to[i]);
  }
  moving.move.from = static_cast<int>(first);
  return moving.Run(x, out);
}

struct Slice : WithAttributes<contract::SliceAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kSlice>;
  Status operator()(TensorView x, TensorView out) const {
    return RunSlice(x, ViewOf(starts), ViewOf(ends), ViewOf(axes), ViewOf(steps), out);
  }
};

struct DynamicSlice {
  static constexpr const char* kName = names::kOnDevice<names::kDynamicSlice>;
  Status operator()(TensorView x, TensorView starts, TensorView ends, std::optional<TensorView> axes,
                    std::optional<TensorView> steps, TensorView out) const {
    Dims first, last, along, by;
    if (Status s = cpu::ReadInts("starts", starts, &first); !s.ok()) return s;
    if (Status s = cpu::ReadInts("ends", ends, &last); !s.ok()) return s;
    if (axes) {
      if (Status s = cpu::ReadInts("axes", *axes, &along); !s.ok()) return s;
    }
    if (steps) {
      if (Status s = cpu::ReadInts("steps", *steps, &by); !s.ok()) return s;
    }
    return RunSlice(x, first.view(), last.view(), along.view(), by.view(), out);
  }
};

// A part of `whole` along an axis, from position `first` on, is moved from or to `part`.
Status MovePart(TensorView whole, TensorView part, int axis, std::int64_t first, bool to_whole) {
  if (part.size() == 0) return Status();
  const std::int64_t outer = cpu::Product(part.dims(), 0, axis);
  const std::int64_t inner = cpu::Product(part.dims(), axis, part.ndim());
  const std::int64_t row = cpu::Product(whole.dims(), axis, whole.ndim());
  const std::int64_t offset = first * cpu::Product(whole.dims(), axis + 1, whole.ndim());
  Moving moving;
  moving.Append(outer, to_whole ? inner : row, to_whole ? row : inner);
  moving.Append(inner, 1, 1);
  (to_whole ? moving.move.to : moving.move.from) = static_cast<int>(offset);
  return to_whole ? moving.Run(part, whole) : moving.Run(whole, part);
}

struct Concat : WithAttributes<contract::ConcatAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kConcat>;
  Status operator()(TensorList tensors) const {
    if (tensors.size() < 2) return TypeError("expected at least one input and the output");
    const TensorView out = tensors.back();
    const TensorList inputs = tensors.first(tensors.size() - 1);
    int along = 0;
    if (Status s = CheckOnDevice("out", out); !s.ok()) return s;
    if (Status s = cpu::NormalizeAxis(axis, out.ndim(), &along); !s.ok()) return s;
    Dims sum;
    for (int i = 0; i < inputs.size(); ++i) {
      if (Status s = CheckMove(inputs[i], out); !s.ok()) return s;
      if (i == 0) {
        sum = Dims(inputs[i].dims());
      } else if (Status s = cpu::ConcatDims(sum.view(), inputs[i].dims(), along, i, &sum); !s.ok()) {
        return s;
      }
    }
    if (Status s = cpu::CheckShape("out", out, sum.view()); !s.ok()) return s;
    std::int64_t first = 0;
    for (int i = 0; i < inputs.size(); ++i) {
      if (Status s = MovePart(out, inputs[i], along, first, true); !s.ok()) return s;
      first += inputs[i].dim(along);
    }
    return Status();
  }
};

struct Split : WithAttributes<contract::SplitAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kSplit>;
  Status operator()(TensorList tensors) const {
    if (tensors.size() < 2) return TypeError("expected x and at least one output");
    const TensorView x = tensors[0];
    const TensorList outputs = tensors.from(1);
    int along = 0;
    if (Status s = CheckOnDevice("x", x); !s.ok()) return s;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    std::int64_t first = 0;
    for (int i = 0; i < outputs.size(); ++i) {
      if (Status s = CheckMove(x, outputs[i]); !s.ok()) return s;
      Status part = contract::AddSplitPart(x.dims(), outputs[i].dims(), along, i, &first, cpu::kShapeError);
      if (!part.ok()) return part;
    }
    if (first != x.dim(along)) {
      return ValueError("the outputs have ", first, " elements along the axis, x has ", x.dim(along));
    }
    first = 0;
    for (int i = 0; i < outputs.size(); ++i) {
      if (Status s = MovePart(x, outputs[i], along, first, false); !s.ok()) return s;
      first += outputs[i].dim(along);
    }
    return Status();
  }
};

struct ReverseSequence : cpu::SequenceAxes {
  static constexpr const char* kName = names::kOnDevice<names::kReverseSequence>;
  Status operator()(TensorView x, TensorView lengths, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected rank 2 or more");
    const std::int64_t batch = x.dim(static_cast<int>(batch_axis));
    DeviceChecks checks;
    checks.Shape("out", out, x.dims()).Beside("lengths", lengths, out);
    if (Status s = checks.Shape("lengths", lengths, ShapeView(&batch, 1)).Take(); !s.ok()) return s;
    if (!lengths.Is<std::int64_t>())
      return TypeError("lengths is ", DTypeName(lengths.dtype()), ", expected i64");
    Form form{};
    if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
    Call call(out, Program::kIndexing, form, "reverse_steps");
    call.Tensor(x).Tensor(lengths).Tensor(out).Int(x.dim(static_cast<int>(time_axis))).Int(batch);
    call.Int(cpu::Product(x.dims(), 2, x.ndim())).Int(batch_axis == 0 ? 1 : 0).Int(out.size());
    return call.Each(out.size());
  }
};

struct Trilu : WithAttributes<contract::TriluAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kTrilu>;
  Status operator()(TensorView x, std::optional<TensorView> k, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected rank 2 or more");
    if (Status s = cpu::CheckShape("out", out, x.dims()); !s.ok()) return s;
    std::int64_t diagonal = 0;
    if (k) {
      if (Status s = cpu::ReadInt("k", *k, &diagonal); !s.ok()) return s;
    }
    const std::int64_t rows = x.dim(x.ndim() - 2), columns = x.dim(x.ndim() - 1);
    Form form{};
    if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
    Call call(out, Program::kIndexing, form, "triangle");
    call.Tensor(x).Tensor(out).Int(rows).Int(columns).Int(std::clamp(diagonal, -rows, columns));
    call.Int(upper ? 1 : 0).Int(out.size());
    return call.Each(out.size());
  }
};

}  // namespace

std::span<const Kernel> MovementKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Copy>("x -> out", "any", "", "x's elements in out's shape"),
      Describe<Expand>("x -> out", "any", "", "x broadcast to out's shape"),
      Describe<Concat>("x... -> out", "any", "axis", "the inputs one after another along the axis"),
      Describe<Split>("x -> out...", "any", "axis = 0",
                      "x cut along the axis into the outputs, whose shapes say where"),
      Describe<Transpose>("x -> out", "any", "perm = reversed", "axis i of out is axis perm[i] of x",
                          cpu::kSelects),
      Describe<Slice>(
          "x -> out", "any", "starts, ends, axes = first ones, steps = 1",
          "ONNX Slice: negative positions count from the end, positions out of range are held in it, "
          "steps may be negative",
          cpu::kSelects),
      OnHost(Describe<DynamicSlice>("x, starts, ends, axes?, steps? -> out", "x, out any; others i64 i32", "",
                                    "rewire.device.slice with its attributes as tensors"),
             {"starts", "ends", "axes", "steps"}),
      Describe<ReverseSequence>("x, lengths -> out", "x, out any of at most 8 bytes; lengths i64",
                                "batch_axis = 1, time_axis = 0",
                                "the first lengths[b] steps of batch b in reverse, the others as they are"),
      OnHost(Describe<Trilu>(
                 "x, k? -> out", "x, out any of at most 8 bytes; k i64", "upper = 1",
                 "of each matrix the part above or below diagonal k (0 if none), with it; 0 elsewhere"),
             {"k"}),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

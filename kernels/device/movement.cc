// SPDX-License-Identifier: Apache-2.0
// Elements in another order or place. All but gather are one or several strided moves.
#include <vector>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/device_call.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

// A move of `dims` elements, with as few axes as serve.
struct Moving {
  Move move{};
  std::int64_t count = 1;

  void Append(std::int64_t dim, std::int64_t from_step, std::int64_t to_step) {
    count *= dim;
    if (dim == 1) return;
    if (move.rank > 0 && move.from_steps[move.rank - 1] == from_step * dim &&
        move.to_steps[move.rank - 1] == to_step * dim) {
      move.dims[move.rank - 1] *= static_cast<int>(dim);
    } else {
      move.dims[move.rank++] = static_cast<int>(dim);
    }
    move.from_steps[move.rank - 1] = static_cast<int>(from_step);
    move.to_steps[move.rank - 1] = static_cast<int>(to_step);
  }
  Status Run(TensorView x, TensorView out) const {
    Form form{};
    if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
    Call call(out, Program::kMovement, form, "move");
    call.Tensor(x).Tensor(out).Value(move).Int(count);
    return call.Each(count);
  }
};

Status CheckMove(TensorView x, TensorView out) {
  return DeviceChecks().On("out", out).Beside("x", x, out).SameDType("out", out, "x", x).Take();
}

struct Copy {
  static constexpr const char kName[] = "rewire.device.copy";
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.size() != out.size()) {
      return ValueError("out has shape ", out.dims(), ", x has shape ", x.dims(), " with another size");
    }
    Moving moving;
    moving.Append(x.size(), 1, 1);
    return moving.Run(x, out);
  }
};

struct Transpose {
  static constexpr const char kName[] = "rewire.device.transpose";
  std::vector<std::int64_t> perm;
  static Status Make(Attributes& attributes, Transpose* transpose) {
    transpose->perm = attributes.Ints("perm", {});
    return Status();
  }
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
  static constexpr const char kName[] = "rewire.device.expand";
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

struct Slice {
  static constexpr const char kName[] = "rewire.device.slice";
  std::vector<std::int64_t> starts, ends, axes, steps;
  static Status Make(Attributes& attributes, Slice* slice) {
    attributes.Require("starts");
    attributes.Require("ends");
    slice->starts = attributes.Ints("starts", {});
    slice->ends = attributes.Ints("ends", {});
    slice->axes = attributes.Ints("axes", {});
    slice->steps = attributes.Ints("steps", {});
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    cpu::SliceRange range;
    const auto view = [](const std::vector<std::int64_t>& list) {
      return ShapeView(list.data(), list.size());
    };
    if (Status s = cpu::SliceDims(x.dims(), view(starts), view(ends), view(axes), view(steps), &range);
        !s.ok())
      return s;
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

struct Concat {
  static constexpr const char kName[] = "rewire.device.concat";
  std::int64_t axis = 0;
  static Status Make(Attributes& attributes, Concat* concat) {
    attributes.Require("axis");
    concat->axis = attributes.Int("axis", 0);
    return Status();
  }
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

struct Split {
  static constexpr const char kName[] = "rewire.device.split";
  std::int64_t axis = 0;
  static Status Make(Attributes& attributes, Split* split) {
    split->axis = attributes.Int("axis", 0);
    return Status();
  }
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
      Dims expected(x.dims());
      if (outputs[i].ndim() == x.ndim()) expected[along] = outputs[i].dim(along);
      if (Status s = cpu::CheckShape("out", outputs[i], expected.view()); !s.ok()) return s;
      first += outputs[i].dim(along);
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

struct Gather {
  static constexpr const char kName[] = "rewire.device.gather";
  std::int64_t axis = 0;
  static Status Make(Attributes& attributes, Gather* gather) {
    gather->axis = attributes.Int("axis", 0);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (Status s = DeviceChecks().Beside("indices", indices, out).Take(); !s.ok()) return s;
    if (!indices.Is<std::int64_t>() && !indices.Is<std::int32_t>()) {
      return TypeError("indices is ", DTypeName(indices.dtype()), ", expected i64 or i32");
    }
    int along = 0;
    if (Status s = cpu::NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::GatherDims(x.dims(), indices.dims(), along, &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (x.dim(along) == 0) return ValueError("x has no rows along axis ", along);
    Form form{};
    if (Status s = MoveForm("x", x, &form); !s.ok()) return s;
    Call call(out, Program::kMovement, form, indices.Is<std::int64_t>() ? "gather_i64" : "gather_i32");
    call.Tensor(x).Tensor(indices).Tensor(out).Int(x.dim(along)).Int(indices.size());
    call.Int(cpu::Product(x.dims(), along + 1, x.ndim())).Int(out.size());
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
      Describe<Gather>("x, indices -> out", "x, out any; indices i64 i32", "axis = 0",
                       "slices of x along the axis, by index; negative ones count from the end"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device

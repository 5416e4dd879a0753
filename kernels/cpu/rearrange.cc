// SPDX-License-Identifier: Apache-2.0
// Copies that change the order of elements or leave some out: transpose, slice, pad.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/registry.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/strided_copy.h"

namespace rewire::kernel::cpu {
namespace {

// Elements from one index to the next of a contiguous tensor.
Dims DenseStrides(ShapeView dims) {
  Dims strides(dims);
  std::int64_t step = 1;
  for (int i = strides.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= dims[static_cast<std::size_t>(i)];
  }
  return strides;
}

ShapeView ViewOf(const std::vector<std::int64_t>& values) { return ShapeView(values.data(), values.size()); }

Status CheckMove(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  return CheckMovable("x", x);
}

struct Transpose {
  static constexpr const char kName[] = "rewire.transpose";
  std::vector<std::int64_t> perm;
  static Status Make(Attributes& attributes, Transpose* transpose) {
    transpose->perm = attributes.Ints("perm", {});
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    Dims order;
    Dims expected;
    if (Status s = PermutedDims(x.dims(), perm, &order, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const Dims from = DenseStrides(x.dims());
    const Dims to = DenseStrides(out.dims());
    Layout<2> layout;
    for (int i = 0; i < out.ndim(); ++i) layout.Append(out.dim(i), {to[i], from[static_cast<int>(order[i])]});
    layout.Finish();
    CopyStrided(layout, x.element_bytes(), out.raw_data(), x.raw_data());
    return Status();
  }
};

Status RunSlice(TensorView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                TensorView out) {
  if (Status s = CheckMove(x, out); !s.ok()) return s;
  SliceRange range;
  if (Status s = SliceDims(x.dims(), starts, ends, axes, steps, &range); !s.ok()) return s;
  if (Status s = CheckShape("out", out, range.dims.view()); !s.ok()) return s;
  if (out.size() == 0) return Status();
  const Dims from = DenseStrides(x.dims());
  const Dims to = DenseStrides(out.dims());
  std::int64_t first = 0;
  Layout<2> layout;
  for (int i = 0; i < out.ndim(); ++i) {
    first += range.start[i] * from[i];
    layout.Append(out.dim(i), {to[i], from[i] * range.step[i]});
  }
  layout.Finish();
  const char* begin = static_cast<const char*>(x.raw_data()) + first * x.element_bytes();
  CopyStrided(layout, x.element_bytes(), out.raw_data(), begin);
  return Status();
}

struct Slice {
  static constexpr const char kName[] = "rewire.slice";
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
    return RunSlice(x, ViewOf(starts), ViewOf(ends), ViewOf(axes), ViewOf(steps), out);
  }
};

struct DynamicSlice {
  static constexpr const char kName[] = "rewire.dynamic_slice";
  Status operator()(TensorView x, TensorView starts, TensorView ends, std::optional<TensorView> axes,
                    std::optional<TensorView> steps, TensorView out) const {
    Dims first, last, along, by;
    if (Status s = ReadInts("starts", starts, &first); !s.ok()) return s;
    if (Status s = ReadInts("ends", ends, &last); !s.ok()) return s;
    if (axes) {
      if (Status s = ReadInts("axes", *axes, &along); !s.ok()) return s;
    }
    if (steps) {
      if (Status s = ReadInts("steps", *steps, &by); !s.ok()) return s;
    }
    return RunSlice(x, first.view(), last.view(), along.view(), by.view(), out);
  }
};

struct Pad {
  static constexpr const char kName[] = "rewire.pad";
  enum Mode { kConstant, kReflect, kEdge, kWrap };
  Mode mode = kConstant;
  std::vector<std::int64_t> pads;
  static Status Make(Attributes& attributes, Pad* pad) {
    attributes.Require("pads");
    pad->pads = attributes.Ints("pads", {});
    pad->mode =
        static_cast<Mode>(attributes.Choice("mode", {"constant", "reflect", "edge", "wrap"}, kConstant));
    return Status();
  }

  Status operator()(TensorView x, std::optional<TensorView> value, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (value) {
      if (Status s = Checks().Dense("value", *value).SameDType("value", *value, "x", x).Take(); !s.ok())
        return s;
      if (value->size() != 1) return ValueError("value has shape ", value->dims(), ", expected one element");
    }
    Dims expected;
    if (Status s = PaddedDims(x.dims(), ViewOf(pads), &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (mode == kConstant) {
      Fill(value, out);
      CopyInterior(x, out);
      return Status();
    }
    for (int i = 0; i < x.ndim(); ++i) {
      if (Status s = CheckReach(x, i); !s.ok()) return s;
    }
    ParallelFor(out.size(), kGrain / 8,
                [&](std::int64_t begin, std::int64_t end) { CopyMapped(x, out, begin, end); });
    return Status();
  }

 private:
  std::int64_t before(int axis) const { return pads[static_cast<std::size_t>(axis)]; }

  static void Fill(const std::optional<TensorView>& value, TensorView out) {
    const std::uint64_t zero[2] = {};
    Layout<2> all;
    all.Append(out.size(), {1, 0});
    all.Finish();
    CopyStrided(all, out.element_bytes(), out.raw_data(), value ? value->raw_data() : zero);
  }

  // What is left of x within out.
  void CopyInterior(TensorView x, TensorView out) const {
    const Dims from = DenseStrides(x.dims());
    const Dims to = DenseStrides(out.dims());
    std::int64_t in_first = 0;
    std::int64_t out_first = 0;
    Layout<2> layout;
    for (int i = 0; i < x.ndim(); ++i) {
      const std::int64_t skipped = std::max<std::int64_t>(0, -before(i));
      const std::int64_t shifted = std::max<std::int64_t>(0, before(i));
      const std::int64_t count = std::min(x.dim(i) - skipped, out.dim(i) - shifted);
      if (count <= 0) return;
      in_first += skipped * from[i];
      out_first += shifted * to[i];
      layout.Append(count, {to[i], from[i]});
    }
    layout.Finish();
    const std::int64_t bytes = x.element_bytes();
    CopyStrided(layout, bytes, static_cast<char*>(out.raw_data()) + out_first * bytes,
                static_cast<const char*>(x.raw_data()) + in_first * bytes);
  }

  Status CheckReach(TensorView x, int axis) const {
    const std::int64_t dim = x.dim(axis);
    const std::int64_t most = std::max(before(axis), before(axis + x.ndim()));
    const std::int64_t reach = mode == kReflect ? dim - 1 : mode == kWrap ? dim : most;
    if (dim > 0 && most <= reach) return Status();
    return ValueError("axis ", axis, " of x with shape ", x.dims(), " is too short for a pad of ", most);
  }

  // The position along an axis of length `dim` that position `i` stands for.
  std::int64_t Source(std::int64_t i, std::int64_t dim) const {
    if (i >= 0 && i < dim) return i;
    switch (mode) {
      case kReflect:
        return i < 0 ? -i : 2 * (dim - 1) - i;
      case kWrap:
        return i < 0 ? i + dim : i - dim;
      case kEdge:
      case kConstant:
        break;
    }
    return i < 0 ? 0 : dim - 1;
  }

  void CopyMapped(TensorView x, TensorView out, std::int64_t begin, std::int64_t end) const {
    const auto bytes = static_cast<std::size_t>(x.element_bytes());
    const char* in = static_cast<const char*>(x.raw_data());
    char* to = static_cast<char*>(out.raw_data());
    for (std::int64_t flat = begin; flat < end; ++flat) {
      std::int64_t rest = flat;
      std::int64_t offset = 0;
      std::int64_t step = 1;
      for (int i = out.ndim() - 1; i >= 0; --i) {
        offset += Source(rest % out.dim(i) - before(i), x.dim(i)) * step;
        rest /= out.dim(i);
        step *= x.dim(i);
      }
      std::memcpy(to + static_cast<std::size_t>(flat) * bytes, in + static_cast<std::size_t>(offset) * bytes,
                  bytes);
    }
  }
};

}  // namespace

std::span<const Kernel> RearrangeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Transpose>("x, out", "any", "perm = reversed", "axis i of out is axis perm[i] of x"),
      Describe<Slice>(
          "x, out", "any", "starts, ends, axes = first ones, steps = 1",
          "ONNX Slice: negative positions count from the end, positions out of range are held in it, steps "
          "may be negative"),
      Describe<DynamicSlice>("x, starts, ends, axes?, steps?, out", "x, out any; others i64 i32", "",
                             "rewire.slice with its attributes as tensors"),
      Describe<Pad>(
          "x, value?, out", "any",
          "pads (before each axis, then after each), mode = constant, reflect, edge or wrap",
          "x with a border of the value (0 if none), of its mirror image, its edge or its other side; "
          "negative pads remove"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

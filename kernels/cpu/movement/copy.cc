// SPDX-License-Identifier: Apache-2.0
//
// Copies that keep the order of elements: reshape into other memory, broadcast, join and split.
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

struct Copy {
  static constexpr const char* kName = names::kCopy;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (out.size() != x.size()) {
      return ValueError("out has shape ", out.dims(), " with ", out.size(), " elements, expected ", x.size(),
                        " as x of shape ", x.dims());
    }
    if (out.raw_data() == x.raw_data()) return Status();
    if (Status s = CheckNoOverlap("out", out, "x", x); !s.ok()) return s;
    return CopyAll(out.raw_data(), x.raw_data(), Times(x.size(), x.element_bytes()));
  }
};

struct Expand {
  static constexpr const char* kName = names::kExpand;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckMovable("x", x); !s.ok()) return s;
    Dims both;
    Status broadcast = BroadcastDims(x.dims(), out.dims(), &both);
    if (!broadcast.ok() || both.view() != out.dims()) {
      return ValueError("x has shape ", x.dims(), ", which does not broadcast to out of shape ", out.dims());
    }
    std::int64_t out_strides[kMaxKernelRank];
    std::int64_t in_strides[kMaxKernelRank];
    BroadcastStrides(out, out.ndim(), out_strides);
    BroadcastStrides(x, out.ndim(), in_strides);
    Layout<2> layout;
    for (int i = 0; i < out.ndim(); ++i) layout.Append(out.dim(i), {out_strides[i], in_strides[i]});
    layout.Finish();
    return CopyStrided(layout, x.element_bytes(), out.raw_data(), x.raw_data());
  }
};

// Whether `part` is that stretch of `whole`: a caller may make a tensor where it is going to be copied.
bool IsStretch(TensorView whole, TensorView part, int axis, std::int64_t start) {
  const std::int64_t inside = Product(whole.dims(), axis + 1, whole.ndim());
  const char* in_whole = static_cast<char*>(whole.raw_data()) + start * inside * whole.element_bytes();
  return part.raw_data() == in_whole && Product(whole.dims(), 0, axis) == 1;
}

// Copies between the whole of `part` and the stretch of `whole` that begins at `start` along `axis`.
Status CopyStretch(TensorView whole, TensorView part, int axis, std::int64_t start, bool into_whole) {
  const ShapeView dims = part.dims();
  const std::int64_t outer = Product(dims, 0, axis);
  const std::int64_t inside = Product(dims, axis + 1, part.ndim());
  const std::int64_t run = Times(dims[static_cast<std::size_t>(axis)], inside);
  const std::int64_t whole_run = Times(whole.dim(axis), inside);
  const std::int64_t bytes = part.element_bytes();
  char* in_whole = static_cast<char*>(whole.raw_data()) + start * inside * bytes;
  Layout<2> layout;
  layout.Append(outer, {into_whole ? whole_run : run, into_whole ? run : whole_run});
  layout.Append(run, {1, 1});
  layout.Finish();
  return into_whole ? CopyStrided(layout, bytes, in_whole, part.raw_data())
                    : CopyStrided(layout, bytes, part.raw_data(), in_whole);
}

struct Concat : WithAttributes<contract::ConcatAttributes> {
  static constexpr const char* kName = names::kConcat;
  Status operator()(const TensorList& tensors) const {
    if (tensors.size() < 2)
      return TypeError("expected at least one input and out, got ", tensors.size(), " arguments");
    const TensorView out = tensors.back();
    const TensorList inputs = tensors.first(tensors.size() - 1);
    Checks checks;
    checks.Dense("out", out);
    for (int i = 0; i < inputs.size(); ++i) {
      checks.Dense("an input", inputs[i]).SameDType("an input", inputs[i], "out", out);
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckMovable("out", out); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, inputs[0].ndim(), &along); !s.ok()) return s;
    Dims expected(inputs[0].dims());
    for (int i = 1; i < inputs.size(); ++i) {
      if (Status s = ConcatDims(expected.view(), inputs[i].dims(), along, i, &expected); !s.ok()) return s;
    }
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    std::int64_t start = 0;
    Checks apart;
    for (int i = 0; i < inputs.size(); ++i) {
      if (!IsStretch(out, inputs[i], along, start)) apart.NoOverlap("out", out, "an input", inputs[i]);
      start += inputs[i].dim(along);
    }
    if (Status s = apart.Take(); !s.ok()) return s;
    start = 0;
    for (int i = 0; i < inputs.size(); ++i) {
      if (!IsStretch(out, inputs[i], along, start)) {
        if (Status s = CopyStretch(out, inputs[i], along, start, true); !s.ok()) return s;
      }
      start += inputs[i].dim(along);
    }
    return Status();
  }
};

struct Split : WithAttributes<contract::SplitAttributes> {
  static constexpr const char* kName = names::kSplit;
  Status operator()(TensorView x, const TensorList& outs) const {
    Checks checks;
    checks.Dense("x", x);
    for (int i = 0; i < outs.size(); ++i) {
      checks.Dense("an output", outs[i]).SameDType("an output", outs[i], "x", x);
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckMovable("x", x); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    std::int64_t sum = 0;
    for (int i = 0; i < outs.size(); ++i) {
      Status part = contract::AddSplitPart(x.dims(), outs[i].dims(), along, i, &sum, kShapeError);
      if (!part.ok()) return part;
    }
    if (sum != x.dim(along)) {
      return ValueError("the outputs take ", sum, " along axis ", along, ", x of shape ", x.dims(), " has ",
                        x.dim(along));
    }
    if (x.size() == 0) return Status();
    std::int64_t start = 0;
    Checks apart;
    for (int i = 0; i < outs.size(); ++i) {
      if (!IsStretch(x, outs[i], along, start)) apart.NoOverlap("an output", outs[i], "x", x);
      start += outs[i].dim(along);
    }
    if (Status s = apart.Take(); !s.ok()) return s;
    start = 0;
    for (int i = 0; i < outs.size(); ++i) {
      if (!IsStretch(x, outs[i], along, start)) {
        if (Status s = CopyStretch(x, outs[i], along, start, false); !s.ok()) return s;
      }
      start += outs[i].dim(along);
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> CopyKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Copy>("x -> out over x", "any", "", "x's elements in out's shape"),
      Describe<Expand>("x -> out", "any", "", "x broadcast to out's shape; a scalar fills out"),
      Describe<Concat>("x... -> out around x", "any", "axis", "the inputs one after another along the axis"),
      Describe<Split>("x -> out... within x", "any", "axis = 0",
                      "x cut along the axis into the outputs, whose shapes say where"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu

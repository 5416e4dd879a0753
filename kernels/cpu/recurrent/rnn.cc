// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/recurrent/rnn.h"

#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/cpu/product/integer_panels.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckState(const NamedTensor& named, TensorView x, ShapeView shape) {
  const auto& [name, tensor] = named;
  if (!IsGiven(tensor)) return Status();
  return Checks().Dense(name, *tensor).SameDType(name, *tensor, "x", x).Shape(name, *tensor, shape).Take();
}

}  // namespace

Status RnnCall::Init(TensorView x, const std::optional<TensorView>& w, TensorView r,
                     const std::optional<TensorView>& b, const std::optional<TensorView>& lengths,
                     std::initializer_list<NamedTensor> states, TensorView y,
                     std::initializer_list<NamedTensor> results) {
  Checks checks;
  checks.Dense("x", x).Dense("y", y);
  if (Status s = checks.Rank("x", x, 3).Take(); !s.ok()) return s;
  if (Status s = CheckWeights("r", r, x); !s.ok()) return s;
  const bool has_w = IsGiven(w) || (w && x.dim(2) == 0);
  if (has_w) {
    if (Status s = CheckWeights("w", *w, x); !s.ok()) return s;
  }
  if (Status s = checks.SameDType("y", y, "x", x).Take(); !s.ok()) return s;
  if (attributes_.packed && !x.Is<float>())
    return TypeError("x has dtype ", DTypeName(x.dtype()), ", expected f32 with packed weights");
  const int directions = attributes_.directions;
  inputs_ = x.dim(2);
  hidden_ = attributes_.hidden != 0 ? attributes_.hidden : r.dim(r.ndim() - 1);
  const contract::LayerSizes<std::int64_t> layer(x.dims(), directions, hidden_, gates_,
                                                 attributes_.batch_first);
  steps_ = layer.steps;
  batch_ = layer.batch;
  // Packed, the directions are one behind the other.
  const std::int64_t stored = PackedColumns(width());
  const auto depth = [&](std::int64_t of) { return bytes_ != nullptr ? PaddedDepth(of) : of; };
  const std::int64_t packed_w[] = {Times(directions, stored), depth(inputs_)};
  const std::int64_t packed_r[] = {Times(directions, stored), depth(hidden_)};
  if (has_w) {
    checks.Shape("w", *w, attributes_.packed ? ShapeView(packed_w, 2) : ShapeView(layer.w, 3));
  } else if (directions != 1 || inputs_ != width()) {
    return ValueError("x has ", inputs_, " elements a step for ", directions, " directions, expected ",
                      width(), " for one without w");
  }
  checks.Shape("r", r, attributes_.packed ? ShapeView(packed_r, 2) : ShapeView(layer.r, 3));
  if (y.size() != 0) checks.Shape("y", y, ShapeView(layer.y, 4));
  if (Status s = checks.Take(); !s.ok()) return s;
  if (Status s = CheckState({"b", b}, x, ShapeView(layer.b, 2)); !s.ok()) return s;
  for (const NamedTensor& state : states) {
    if (Status s = CheckState(state, x, ShapeView(layer.state, 3)); !s.ok()) return s;
  }
  for (const NamedTensor& result : results) {
    if (Status s = CheckState(result, x, ShapeView(layer.state, 3)); !s.ok()) return s;
    if (Status s = CheckShape(result.first, *result.second, ShapeView(layer.state, 3)); !s.ok()) return s;
    for (const NamedTensor& input : {NamedTensor{"x", x}, {"w", w}, {"r", r}, {"b", b}}) {
      if (input.second) checks.NoOverlap(result.first, *result.second, input.first, *input.second);
    }
    checks.NoOverlap(result.first, *result.second, "y", y);
  }
  checks.NoOverlap("y", y, "x", x).NoOverlap("y", y, "r", r);
  if (has_w) checks.NoOverlap("y", y, "w", *w);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (IsGiven(lengths)) {
    checks.Dense("sequence_lens", *lengths).Shape("sequence_lens", *lengths, ShapeView(&batch_, 1));
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!lengths->Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "sequence_lens", *lengths);
    if (Status s = CopyLengths(*lengths); !s.ok()) return s;
  }
  x_ = x;
  if (has_w) w_ = w;
  r_ = r;
  y_ = y;
  b_ = b;
  return Status();
}

Status RnnCall::CheckWeights(const char* name, TensorView weights, TensorView x) const {
  Checks checks;
  checks.Dense(name, weights).Rank(name, weights, attributes_.packed ? 2 : 3);
  if (bytes_ == nullptr) checks.SameDType(name, weights, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (bytes_ != nullptr && !weights.Is<std::int8_t>()) return WrongDType(Types<std::int8_t>(), name, weights);
  return Status();
}

// Into memory that nobody else writes, and then checked: a step that found other lengths than those checked
// would leave x and y.
Status RnnCall::CopyLengths(TensorView lengths) {
  if (Status s = Workspace(std::max<std::int64_t>(1, batch_), &lengths_); !s.ok()) return s;
  if (Status s = CopyAll(lengths_, lengths.raw_data(), Times(batch_, sizeof(std::int32_t))); !s.ok())
    return s;
  Pace pace;
  for (std::int64_t i = 0; i < batch_; ++i) {
    if (!pace.Spend(1)) return Stopped();
    if (lengths_[i] >= 0 && lengths_[i] <= steps_) continue;
    return ValueError("element ", i, " of sequence_lens is ", lengths_[i], ", expected 0 to ", steps_);
  }
  return Status();
}

}  // namespace rewire::kernel::cpu

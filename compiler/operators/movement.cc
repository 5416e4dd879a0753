// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: join, cut, repeat, pad, rearrange.
#include <algorithm>
#include <limits>
#include <numeric>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

// Strings of several lists become those of one.
Result<std::optional<JoinedTexts>> JoinInputs(Op& op, std::vector<Value*>* inputs) {
  const auto is_strings = [&](const Value* input) { return op.lowering().strings().Has(input); };
  if (std::none_of(inputs->begin(), inputs->end(), is_strings)) return std::optional<JoinedTexts>();
  if (!std::all_of(inputs->begin(), inputs->end(), is_strings))
    return op.Invalid("some inputs are strings, others are not");
  JoinedTexts joined = JoinTexts(op, *inputs);
  *inputs = joined.positions;
  return std::optional(std::move(joined));
}

Status LowerConcat(Op& op, const Operator& /*row*/) {
  std::vector<Value*> inputs = op.Arguments(0, op.inputs() - 1);
  const Result<std::optional<JoinedTexts>> joined = JoinInputs(op, &inputs);
  if (!joined) return Forward(joined);
  Result<int> axis = op.Axis(op.Int("axis", 1), inputs[0]->type.rank());
  if (!axis) return Forward(axis);
  std::optional<Shape> elements = KnownElements(inputs[0]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const std::optional<Shape> more = KnownElements(inputs[i]);
    if (elements && more) {
      elements->insert(elements->end(), more->begin(), more->end());
    } else {
      elements.reset();
    }
  }
  Value* result = op.Concat(inputs, *axis);
  if (!op.failure()) return op.failure();
  if (*joined) {
    SetJoined(op, 0, result, **joined);
    return {};
  }
  if (!result->IsConstant() && elements) SetElements(result, *std::move(elements));
  op.Set(0, result);
  return {};
}

// The parts' lengths: given, or equal with a shorter last one.
Status LowerSplit(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", 0), x->type.rank());
  if (!axis) return Forward(axis);
  const auto at = static_cast<std::size_t>(*axis);
  const int parts = op.outputs();
  if (parts == 0) return op.Invalid("it has no outputs");
  if (op.Int("num_outputs", parts) != parts) {
    return op.Invalid("num_outputs is {}, it has {} outputs", op.Int("num_outputs", parts), parts);
  }
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {x};
  call.attributes = {{"axis", std::int64_t{*axis}}};
  std::optional<Shape> lengths;
  if (op.HasAttribute("split")) lengths = ShapeOfInts(op.IntList("split"));
  Value* given = op.opset() >= 13 ? op.in(1) : nullptr;
  if (given != nullptr) lengths = KnownElements(given);
  if (!lengths && given == nullptr) {
    const DimExpr length = DimExpr::CeilDiv(x->type.dims[at], parts);
    // The first part is never longer than the axis. Of two parts the second is what the first leaves; of
    // more, later ones may be shorter or empty.
    lengths = Shape{length};
    for (int i = 1; i < parts; ++i) {
      const DimExpr rest = x->type.dims[at] - length * DimExpr(i);
      lengths->push_back(parts == 2 ? rest : DimExpr::Max(DimExpr::Min(length, rest), 0));
    }
  }
  if (lengths && lengths->size() != static_cast<std::size_t>(parts)) {
    return op.Invalid("{} lengths for {} outputs", lengths->size(), parts);
  }
  for (int i = 0; i < parts; ++i) {
    Type type = x->type;
    if (lengths) {
      type.dims[at] = (*lengths)[static_cast<std::size_t>(i)];
    } else {
      type.dims[at] = DimExpr::Symbol(op.lowering().graph().FreshSymbol(""));
      call.shapes.push_back(op.ShapeValue({names::kShapeSplit,
                                           {op.ShapeOf(x), given},
                                           {{"index", std::int64_t{i}}, {"axis", std::int64_t{*axis}}}},
                                          x->type.rank()));
    }
    call.outputs.push_back(std::move(type));
  }
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (int i = 0; i < parts; ++i) {
    op.Set(i, outputs[static_cast<std::size_t>(i)]);
    op.lowering().strings().Copy(x, outputs[static_cast<std::size_t>(i)]);
  }
  return {};
}

// Models slice to here where they mean the end of an axis whose size they do not know.
constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();

// How long a slice of an axis is, when that can be said. The step is not 0.
std::optional<DimExpr> SlicedDim(const DimExpr& dim, std::int64_t start, std::int64_t end,
                                 std::int64_t step) {
  if (step == 0) return std::nullopt;
  if (const std::optional<std::int64_t> size = dim.constant())
    return DimExpr(SliceAxis(*size, start, end, step).count);
  if (step == 1 && start == 0 && end >= kFar) return dim;
  if (step == 1 && start == 0 && end < 0) return DimExpr::Max(dim + DimExpr(end), 0);
  if (step == 1 && start > 0 && end >= kFar) return DimExpr::Max(dim - DimExpr(start), 0);
  if (step == 1 && start < 0 && end >= kFar) return DimExpr::Min(dim, -start);
  if (step == 1 && start == 0 && end >= 0) return DimExpr::Min(dim, end);
  if (step == -1 && start == -1 && end < -kFar) return dim;
  return std::nullopt;
}

// The same with a step of 1 between positions that are expressions.
std::optional<DimExpr> SlicedDim(const DimExpr& dim, const DimExpr& start, const DimExpr& end) {
  if (start.IsConstant() && end.IsConstant()) return SlicedDim(dim, *start.constant(), *end.constant(), 1);
  // A negative position counts from behind: which it is has to show.
  const auto hold = [&](const DimExpr& position) -> std::optional<DimExpr> {
    if (position.IsConstant() && *position.constant() >= kFar) return dim;
    const Interval bounds = position.Bounds();
    if (bounds.least >= 0) return DimExpr::Min(position, dim);
    if (bounds.most < 0) return DimExpr::Max(dim + position, 0);
    // At least as far from behind as the axis is long, and 0 only on an axis of no elements.
    if (bounds.most == 0 && DimExpr::Min(dim, DimExpr(-1) * position) == dim) return DimExpr(0);
    return std::nullopt;
  };
  const std::optional<DimExpr> first = hold(start), last = hold(end);
  if (!first || !last) return std::nullopt;
  return DimExpr::Max(*last - *first, 0);
}

// The dimensions of a slice of which starts or ends are computed; nothing where they cannot be said.
std::optional<Shape> DynamicSliceDims(const Op& op) {
  const std::optional<Shape> starts = KnownElements(op.in(1)), ends = KnownElements(op.in(2));
  const std::optional<Ints> axes = KnownInts(op.in(3)), steps = KnownInts(op.in(4));
  const bool known = starts && ends && starts->size() == ends->size() && (axes || op.in(3) == nullptr) &&
                     (steps || op.in(4) == nullptr);
  if (!known || (axes && axes->size() != starts->size())) return std::nullopt;
  if (steps && std::any_of(steps->begin(), steps->end(), [](std::int64_t step) { return step != 1; })) {
    return std::nullopt;
  }
  Shape dims = op.in(0)->type.dims;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const Result<int> axis = op.Axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), op.in(0)->type.rank());
    if (!axis) return std::nullopt;
    DimExpr& dim = dims[static_cast<std::size_t>(*axis)];
    const std::optional<DimExpr> sliced = SlicedDim(dim, (*starts)[i], (*ends)[i]);
    if (!sliced) return std::nullopt;
    dim = *sliced;
  }
  return dims;
}

// The dimensions that a slice does not cut, whatever its starts and ends are.
Op::OpenShape UnslicedDims(const Op& op) {
  const Value* x = op.in(0);
  std::optional<Ints> axes = KnownInts(op.in(3));
  if (op.in(3) == nullptr) {
    const Result<std::int64_t> count = op.Length(op.in(1), "the list of starts");
    if (!count) return Op::AllOpen(x->type.rank());
    axes = Ints(static_cast<std::size_t>(*count));
    std::iota(axes->begin(), axes->end(), 0);
  }
  return axes ? Op::Open(x->type.dims, *axes) : Op::AllOpen(x->type.rank());
}

Status LowerSlice(Op& op, const Operator& row) {
  Value* x = op.in(0);
  std::optional<Ints> starts, ends, axes, steps;
  const bool attributes = op.opset() < 10;
  if (attributes) {
    starts = op.IntList("starts");
    ends = op.IntList("ends");
    if (op.HasAttribute("axes")) axes = op.IntList("axes");
  } else {
    if (op.in(1) == nullptr || op.in(2) == nullptr) return op.Invalid("starts or ends are missing");
    starts = KnownInts(op.in(1));
    ends = KnownInts(op.in(2));
    axes = KnownInts(op.in(3));
    steps = KnownInts(op.in(4));
  }
  const bool known =
      starts && ends && (attributes || ((op.in(3) == nullptr || axes) && (op.in(4) == nullptr || steps)));
  if (!known) {
    const std::vector<Value*> more = op.Arguments(1, 4);
    std::vector<Value*> inputs = {x}, shapes = {op.ShapeOf(x)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    if (std::optional<Shape> dims = DynamicSliceDims(op)) {
      op.Set(0, op.Call(names::kDynamicSlice, inputs, {}, TensorOf(x->type.dtype, *std::move(dims))));
      return {};
    }
    shapes.insert(shapes.end(), more.begin(), more.end());
    op.Set(0, op.CallShaped(names::kDynamicSlice, inputs, {}, x->type.dtype, UnslicedDims(op),
                            {names::kShapeSlice, shapes, {}}));
    return {};
  }
  if (!axes) {
    axes = Ints(starts->size());
    for (std::size_t i = 0; i < axes->size(); ++i) (*axes)[i] = static_cast<std::int64_t>(i);
  }
  if (!steps) steps = Ints(starts->size(), 1);
  if (axes->size() != starts->size() || steps->size() != starts->size())
    return op.Invalid("{} axes and {} steps for {} starts", axes->size(), steps->size(), starts->size());
  Shape dims = x->type.dims;
  Op::OpenShape open(dims.begin(), dims.end());
  bool all = true;
  std::vector<bool> seen(dims.size(), false);
  const auto cut = [&](std::size_t axis, std::size_t i, std::int64_t step) {
    if (seen[axis]) return false;
    seen[axis] = true;
    std::int64_t& end = (*ends)[i];
    if (!dims[axis].IsConstant() && end == kFar) end = std::numeric_limits<std::int64_t>::max();
    open[axis] = SlicedDim(dims[axis], (*starts)[i], end, step);
    all = all && open[axis].has_value();
    dims[axis] = open[axis].value_or(dims[axis]);
    return true;
  };
  if (Status fits = contract::SliceAxes(dims, *starts, *ends, *axes, *steps, cut, op.ShapeError()); !fits)
    return fits;
  const bool forwards =
      std::all_of(steps->begin(), steps->end(), [](std::int64_t step) { return step == 1; });
  if (all && forwards && ShapeText(dims) == ShapeText(x->type.dims)) {
    op.Set(0, x);  // all of it
    return {};
  }
  const Attributes list = {{"starts", *starts}, {"ends", *ends}, {"axes", *axes}, {"steps", *steps}};
  if (!all) {
    op.Set(0, op.CallShaped(row.kernel, {x}, list, x->type.dtype, open,
                            {names::kShapeSlice,
                             {op.ShapeOf(x), op.IntsValue(*starts), op.IntsValue(*ends), op.IntsValue(*axes),
                              op.IntsValue(*steps)},
                             {}}));
    return {};
  }
  Value* result = op.Call(row.kernel, {x}, list, TensorOf(x->type.dtype, std::move(dims)));
  const std::optional<Shape> elements = KnownElements(x);
  if (elements && !result->IsConstant() && axes->size() == 1 && (*steps)[0] == 1) {
    const SlicedAxis sliced =
        SliceAxis(static_cast<std::int64_t>(elements->size()), (*starts)[0], (*ends)[0], 1);
    const auto first = elements->begin() + sliced.first;
    SetElements(result, Shape(first, first + sliced.count));
  }
  op.Set(0, result);
  return {};
}

Status LowerTile(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Value* repeats = op.in(1);
  if (const std::optional<Shape> known = KnownElements(repeats)) {
    Shape dims;
    if (Status fits = contract::TiledSizes(x->type.dims, *known, &dims, op.ShapeError()); !fits) return fits;
    op.Set(0, op.Call(row.kernel, {x}, {}, TensorOf(x->type.dtype, std::move(dims))));
    return {};
  }
  op.Set(0, op.CallShaped(row.kernel, {x}, {}, x->type.dtype, Op::AllOpen(x->type.rank()),
                          {names::kShapeTile, {op.ShapeOf(x), repeats}, {}}));
  return {};
}

// Strings and what fills their border, an empty one if nothing is given, as positions in one list. None of
// numbers.
Result<std::optional<JoinedTexts>> JoinPadded(Op& op, const std::string& mode, Value** x, Value** value) {
  const StringTables& tables = op.lowering().strings();
  const bool fills = mode == "constant";
  if (!tables.Has(*x)) {
    if (*value != nullptr && tables.Has(*value)) return op.Invalid("strings fill the border of numbers");
    return std::optional<JoinedTexts>();
  }
  if (!fills) *value = nullptr;
  if (fills && *value == nullptr) {
    *value = ConstantTexts(op, {""}).positions;
    op.lowering().strings().Set(*value, Strings{""});
  } else if (fills && !tables.Has(*value)) {
    return op.Invalid("numbers fill the border of strings");
  }
  JoinedTexts joined = JoinTexts(op, fills ? std::vector<Value*>{*x, *value} : std::vector<Value*>{*x});
  *x = joined.positions[0];
  if (fills) *value = joined.positions[1];
  return std::optional<JoinedTexts>(std::move(joined));
}

Status LowerPad(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const std::string mode = op.String("mode", "constant");
  for (const int i : {1, 3}) {
    if (op.lowering().strings().Has(op.in(i))) return op.Invalid("input {} is strings", i);
  }
  std::optional<Ints> pads;
  Value* value = nullptr;
  if (op.opset() < 11) {
    pads = op.IntList(op.HasAttribute("pads") ? "pads" : "paddings");
    if (op.Float("value", 0) != 0) value = op.Scalar(x->type.dtype, op.Float("value", 0));
  } else {
    if (op.in(1) == nullptr) return op.Invalid("pads are missing");
    pads = KnownInts(op.in(1));
    value = op.in(2);
  }
  const Result<std::optional<JoinedTexts>> joined = JoinPadded(op, mode, &x, &value);
  if (!joined) return Forward(joined);
  const auto set = [&](Value* padded) { *joined ? SetJoined(op, 0, padded, **joined) : op.Set(0, padded); };
  std::optional<Ints> axes = KnownInts(op.in(3));
  const auto rank = static_cast<std::size_t>(x->type.rank());
  if (!pads || (op.in(3) != nullptr && !axes)) {
    std::vector<Value*> inputs = {x, op.in(1)}, shapes = {op.ShapeOf(x), op.in(1)};
    if (value != nullptr || op.in(3) != nullptr)
      inputs.push_back(value != nullptr ? value : op.Missing(x->type.dtype));
    if (op.in(3) != nullptr) {
      inputs.push_back(op.in(3));
      shapes.push_back(op.in(3));
    }
    const Op::OpenShape known = axes ? Op::Open(x->type.dims, *axes) : Op::AllOpen(x->type.rank());
    set(op.CallShaped(names::kDynamicPad, inputs, {{"mode", mode}}, x->type.dtype, known,
                      {names::kShapeDynamicPad, shapes, {}}));
    return {};
  }
  Ints all = *pads;
  if (axes) {
    all = Ints(2 * rank, 0);
    if (Status fits = contract::SpreadPads(*pads, *axes, rank, &all, op.ShapeError()); !fits) return fits;
  }
  Shape dims;
  if (Status fits = contract::PaddedSizes(x->type.dims, all, &dims, op.ShapeError()); !fits) return fits;
  std::vector<Value*> inputs = {x};
  if (value != nullptr) inputs.push_back(value);
  set(op.Call(row.kernel, inputs, {{"pads", all}, {"mode", mode}}, TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

// Cuts axes that are longer than the target and fills those that are shorter, on both sides alike.
Status LowerCenterCropPad(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const Result<std::int64_t> count = op.Length(op.in(1), "the target shape");
  if (!count) return Forward(count);
  Ints axes = op.IntList("axes");
  for (std::int64_t i = 0; !op.HasAttribute("axes") && i < *count; ++i) axes.push_back(i);
  if (axes.size() != static_cast<std::size_t>(*count))
    return op.Invalid("{} sizes for {} axes", *count, axes.size());
  Shape dims;
  for (const std::int64_t axis : axes) {
    const Result<int> at = op.Axis(axis, x->type.rank());
    if (!at) return Forward(at);
    dims.push_back(x->type.dims[static_cast<std::size_t>(*at)]);
  }
  Value *size = op.DimsValue(dims), *target = op.Cast(op.in(1), kInt64), *two = op.IntValue(2);
  Value* kept = op.Apply(names::kMin, size, target);
  Value* start = op.Apply(names::kDiv, op.Apply(names::kSub, size, kept), two);
  Value* missing = op.Apply(names::kSub, target, kept);
  Value* before = op.Apply(names::kDiv, missing, two);
  Value* pads = op.Concat({before, op.Apply(names::kSub, missing, before)}, 0);
  const std::vector<Value*> cut = {start, op.Apply(names::kAdd, start, kept), op.IntsValue(axes)};
  const auto with = [&](std::vector<Value*> inputs, const std::vector<Value*>& more) {
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  };
  const Op::OpenShape known = Op::Open(x->type.dims, axes);
  Value* middle = op.CallShaped(names::kDynamicSlice, with({x}, cut), {}, x->type.dtype, known,
                                {names::kShapeSlice, with({op.ShapeOf(x)}, cut), {}});
  op.Set(0, op.CallShaped(names::kDynamicPad, {middle, pads, op.Missing(x->type.dtype), cut[2]},
                          {{"mode", std::string("constant")}}, x->type.dtype, known,
                          {names::kShapeDynamicPad, {op.ShapeOf(middle), pads, cut[2]}, {}}));
  return {};
}

Status LowerTrilu(Op& op, const Operator& row) {
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 1), {{"upper", op.Int("upper", 1)}}, op.in(0)->type));
  return {};
}

Status LowerReverseSequence(Op& op, const Operator& row) {
  op.Set(0, op.Call(row.kernel, {op.in(0), op.in(1)},
                    {{"batch_axis", op.Int("batch_axis", 1)}, {"time_axis", op.Int("time_axis", 0)}},
                    op.in(0)->type));
  return {};
}

// Whether the axes of a block stand behind the channels (CRD) or in front of them (mode DCR).
Result<bool> BlocksBehind(const Op& op) {
  const std::string mode = op.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return op.Invalid("mode is '{}', expected DCR or CRD", mode);
  return mode == "CRD";
}

// [N, C, H, W] in blocks of b: the block's axes go from channels to space.
Status LowerDepthToSpace(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const std::int64_t b = op.Int("blocksize", 0);
  if (x->type.rank() != 4 || b < 1 || b > 65536)
    return op.Invalid("blocksize {} of {}", b, ShapeText(x->type.dims));
  const Shape& d = x->type.dims;
  const DimExpr depth = DimExpr::FloorDiv(d[1], b * b);
  const Result<bool> crd = BlocksBehind(op);
  if (!crd) return Forward(crd);
  Value* blocks =
      *crd ? op.Reshape(x, {d[0], depth, b, b, d[2], d[3]}) : op.Reshape(x, {d[0], b, b, depth, d[2], d[3]});
  Value* moved = op.Transpose(blocks, *crd ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  op.Set(0, op.Reshape(moved, {d[0], depth, d[2] * DimExpr(b), d[3] * DimExpr(b)}));
  return {};
}

Status LowerSpaceToDepth(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const std::int64_t b = op.Int("blocksize", 0);
  if (x->type.rank() != 4 || b < 1 || b > 65536)
    return op.Invalid("blocksize {} of {}", b, ShapeText(x->type.dims));
  const Shape& d = x->type.dims;
  const DimExpr height = DimExpr::FloorDiv(d[2], b), width = DimExpr::FloorDiv(d[3], b);
  const Result<bool> crd = BlocksBehind(op);
  if (!crd) return Forward(crd);
  Value* blocks = op.Reshape(x, {d[0], d[1], height, b, width, b});
  Value* moved = op.Transpose(blocks, *crd ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  op.Set(0, op.Reshape(moved, {d[0], d[1] * DimExpr(b * b), height, width}));
  return {};
}

}  // namespace

std::span<const Operator> MovementOperators() {
  static constexpr Operator kOperators[] = {
      {"CenterCropPad", 18, 0, 2, 2, "axes", LowerCenterCropPad},
      {"Concat", 1, 0, 1, kAnyNumber, "axis", LowerConcat, names::kConcat, kTakesStrings},
      {"DepthToSpace", 1, 0, 1, 1, "blocksize mode", LowerDepthToSpace, nullptr, kMovesStrings},
      {"Pad", 1, 0, 1, 4, "mode paddings<2 pads<11 value<11", LowerPad, names::kPad, kTakesStrings},
      {"ReverseSequence", 10, 0, 2, 2, "batch_axis time_axis", LowerReverseSequence, names::kReverseSequence,
       kMovesStrings},
      {"Slice", 1, 0, 1, 5, "axes<10 ends<10 starts<10", LowerSlice, names::kSlice, kMovesStrings},
      {"SpaceToDepth", 1, 0, 1, 1, "blocksize mode", LowerSpaceToDepth, nullptr, kMovesStrings},
      {"Split", 1, 0, 1, 2, "axis num_outputs split<13", LowerSplit, names::kSplit, kMovesStrings},
      {"Tile", 6, 0, 2, 2, "", LowerTile, names::kTile, kMovesStrings},
      {"Trilu", 14, 0, 1, 2, "upper", LowerTrilu, names::kTrilu},
  };
  return kOperators;
}

}  // namespace rewire::compiler

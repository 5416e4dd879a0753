// SPDX-License-Identifier: Apache-2.0
// Copies in another order or place: each is one strided copy, or one for each part.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"

namespace rewire::aot {
namespace {

// A tensor, from an element of it on, with its steps along the axes of a copy.
struct Side {
  const CallArgument& argument;
  std::int64_t begin = 0;
  Dims steps;
};

// Without axes of one element, and with those as one that lie end to end on both sides.
void MergeAxes(Dims* dims, Side* from, Side* to) {
  Dims merged;
  Dims from_steps;
  Dims to_steps;
  for (std::size_t i = 0; i < dims->size(); ++i) {
    const std::int64_t dim = (*dims)[i];
    if (dim == 1) continue;
    const bool joins =
        !merged.empty() && from_steps.back() == from->steps[i] * dim && to_steps.back() == to->steps[i] * dim;
    if (joins) {
      merged.back() *= dim;
      from_steps.back() = from->steps[i];
      to_steps.back() = to->steps[i];
    } else {
      merged.push_back(dim);
      from_steps.push_back(from->steps[i]);
      to_steps.push_back(to->steps[i]);
    }
  }
  *dims = std::move(merged);
  from->steps = std::move(from_steps);
  to->steps = std::move(to_steps);
}

std::string AddressOf(const Side& side, std::uint64_t element) {
  const std::int64_t bytes = side.begin * static_cast<std::int64_t>(element);
  return bytes == 0 ? side.argument.text : fmt::format("{} + {}", side.argument.text, bytes);
}

Result<std::string> Move(EmbeddedCall& call, Dims dims, Side from, Side to) {
  const std::uint64_t element = ElementBytes(call.OutputValue().dtype);
  if (element != 1 && element != 2 && element != 4 && element != 8 && element != 16) {
    return call.Refuse(fmt::format("an element has {} bytes", element));
  }
  if (Product(dims) == 0) return std::string();
  MergeAxes(&dims, &from, &to);
  const bool is_whole = dims.empty() || (dims.size() == 1 && from.steps[0] == 1 && to.steps[0] == 1);
  if (is_whole) {
    Place begin = from.argument.value.place;
    Place end = to.argument.value.place;
    begin.offset += static_cast<std::uint64_t>(from.begin) * element;
    end.offset += static_cast<std::uint64_t>(to.begin) * element;
    if (begin == end) return std::string();  // the compiler has placed the one in the other
    return fmt::format("memcpy({}, {}, {});", AddressOf(to, element), AddressOf(from, element),
                       static_cast<std::uint64_t>(Product(dims)) * element);
  }
  if (dims.size() > kMostEmbeddedRank) return call.Refuse("it has more than 8 axes");
  const std::string sizes =
      call.definitions().Struct("move", fmt::format("{{{}, {}, {}, {}, {}}}", dims.size(), element,
                                                    Braced(dims), Braced(from.steps), Braced(to.steps)));
  return fmt::format("rewire_embedded_move_elements(&{}, {}, {});", sizes, AddressOf(from, element),
                     AddressOf(to, element));
}

const CallArgument& Given(const EmbeddedCall& call, std::size_t place) {
  return call.kernel().arguments[place];
}
const CallArgument& Made(const EmbeddedCall& call, std::size_t place = 0) {
  return call.kernel().arguments[call.inputs() + place];
}

Result<std::string> Copy(EmbeddedCall& call) {
  const Dims all = {Product(call.OutputDims())};
  return Move(call, all, {Given(call, 0), 0, {1}}, {Made(call), 0, {1}});
}

Result<std::string> Transpose(EmbeddedCall& call) {
  const Dims& x = call.InputDims(0);
  Dims perm = call.Read<contract::TransposeAttributes>().perm;
  while (perm.size() < x.size()) perm.push_back(static_cast<std::int64_t>(x.size() - 1 - perm.size()));
  const Dims strides = StridesOf(x);
  Dims sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool is_axis = sorted.size() == x.size() && sorted[i] == static_cast<std::int64_t>(i);
    if (!is_axis) return call.Refuse("its attribute perm does not name each axis once");
  }
  Dims from;
  for (const std::int64_t axis : perm) from.push_back(strides[static_cast<std::size_t>(axis)]);
  const Dims& out = call.OutputDims();
  return Move(call, out, {Given(call, 0), 0, from}, {Made(call), 0, StridesOf(out)});
}

Result<std::string> Expand(EmbeddedCall& call) {
  const Dims& x = call.InputDims(0);
  const Dims& out = call.OutputDims();
  if (x.size() > out.size()) return call.Refuse("the input has more axes than the output");
  Dims from(out.size(), 0);
  const Dims strides = StridesOf(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 1) from[out.size() - x.size() + i] = strides[i];
  }
  return Move(call, out, {Given(call, 0), 0, from}, {Made(call), 0, StridesOf(out)});
}

// Each axis is two: the repeats, and x's own.
Result<std::string> Tile(EmbeddedCall& call) {
  const Dims& x = call.InputDims(0);
  const Dims& out = call.OutputDims();
  if (x.size() != out.size()) return call.Refuse("input and output have not as many axes");
  const Dims x_strides = StridesOf(x);
  const Dims out_strides = StridesOf(out);
  Dims dims;
  Side from{Given(call, 0), 0, {}};
  Side to{Made(call), 0, {}};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) return std::string();
    dims.insert(dims.end(), {out[i] / x[i], x[i]});
    from.steps.insert(from.steps.end(), {0, x_strides[i]});
    to.steps.insert(to.steps.end(), {out_strides[i] * x[i], out_strides[i]});
  }
  return Move(call, dims, from, to);
}

// The statements of several copies.
Result<std::string> Parts(EmbeddedCall& call, bool is_split) {
  const Dims& whole = is_split ? call.InputDims(0) : call.OutputDims();
  const std::int64_t along =
      is_split ? call.Read<contract::SplitAttributes>().axis : call.Read<contract::ConcatAttributes>().axis;
  const Result<std::size_t> axis = call.Axis(along, whole.size());
  if (!axis) return Forward(axis);
  const Dims strides = StridesOf(whole);
  std::string text;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < (is_split ? call.outputs() : call.inputs()); ++i) {
    const Dims& part = is_split ? call.OutputDims(i) : call.InputDims(i);
    if (part.size() != whole.size()) return call.Refuse("its parts have not as many axes");
    const Side of_whole{is_split ? Given(call, 0) : Made(call), begin * strides[*axis], strides};
    const Side of_part{is_split ? Made(call, i) : Given(call, i), 0, StridesOf(part)};
    const Result<std::string> move =
        is_split ? Move(call, part, of_whole, of_part) : Move(call, part, of_part, of_whole);
    if (!move) return move;
    text += (text.empty() || move->empty() ? "" : "\n  ") + *move;
    begin += part[*axis];
  }
  return text;
}
Result<std::string> Concat(EmbeddedCall& call) { return Parts(call, false); }
Result<std::string> Split(EmbeddedCall& call) { return Parts(call, true); }

Result<std::string> Slice(EmbeddedCall& call) {
  const Dims& x = call.InputDims(0);
  const auto given = call.Read<contract::SliceAttributes>();
  const Dims &starts = given.starts, &axes = given.axes, &steps = given.steps;
  const auto fits = [&](const Dims& list) { return list.empty() || list.size() == starts.size(); };
  if (starts.size() > x.size() || !fits(axes) || !fits(steps)) {
    return call.Refuse("its attributes starts, axes and steps do not fit the input");
  }
  Side from{Given(call, 0), 0, StridesOf(x)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    if (axis < 0) axis += static_cast<std::int64_t>(x.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(x.size())) {
      return call.Refuse(fmt::format("axis {} is none of its {} axes", axis, x.size()));
    }
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    std::int64_t start = starts[i] < 0 ? starts[i] + x[at] : starts[i];
    start = std::clamp<std::int64_t>(start, 0, step < 0 ? std::max<std::int64_t>(x[at] - 1, 0) : x[at]);
    from.begin += start * from.steps[at];
    from.steps[at] *= step;
  }
  const Dims& out = call.OutputDims();
  return Move(call, out, from, {Made(call), 0, StridesOf(out)});
}

// An expression: an index may be out of range.
Result<std::string> Gather(EmbeddedCall& call) {
  const DLDataType indices = call.InputValue(1).dtype;
  const Dims& x = call.InputDims(0);
  const Result<std::size_t> axis = call.Axis(call.Read<contract::GatherAttributes>().axis, x.size());
  if (!axis) return Forward(axis);
  if (indices != kInt32 && indices != kInt64) return call.Refuse("its indices are no integers");
  const std::string sizes = call.definitions().Struct(
      "gather", Braced({Product(x, 0, *axis), x[*axis], Product(call.InputDims(1)),
                        Product(x, *axis + 1, x.size()) *
                            static_cast<std::int64_t>(ElementBytes(call.InputValue(0).dtype))}));
  return fmt::format("rewire_embedded_gather_{}(&{}, {}, {}, {})", DTypeName(indices), sizes, call.Input(0),
                     call.Input(1), call.Output());
}

// An expression, too.
Result<std::string> GatherElements(EmbeddedCall& call) {
  const DLDataType indices = call.InputValue(1).dtype;
  const Dims& x = call.InputDims(0);
  const Dims& out = call.OutputDims();
  const Result<std::size_t> axis = call.Axis(call.Read<contract::GatherAttributes>().axis, x.size());
  if (!axis) return Forward(axis);
  if (indices != kInt32 && indices != kInt64) return call.Refuse("its indices are no integers");
  if (out.size() > kMostEmbeddedRank) return call.Refuse("it has more than 8 axes");
  Dims steps = StridesOf(x);
  const std::int64_t step = std::exchange(steps[*axis], 0);
  const std::string sizes =
      call.definitions().Struct("gather_elements", fmt::format("{{{}, {}, {}, {}, {}, {}}}", out.size(),
                                                               ElementBytes(call.InputValue(0).dtype),
                                                               x[*axis], step, Braced(out), Braced(steps)));
  return fmt::format("rewire_embedded_gather_elements_{}(&{}, {}, {}, {})", DTypeName(indices), sizes,
                     call.Input(0), call.Input(1), call.Output());
}

Result<std::string> Trilu(EmbeddedCall& call) {
  contract::TriluAttributes given;
  given.Read(call.attributes);
  const Dims& x = call.InputDims(0);
  const std::int64_t rows = x[x.size() - 2];
  std::int64_t diagonal = 0;
  if (call.Has(1)) {
    if (!call.IntegersOf(1)) return call.Refuse("its diagonal is known only when the program runs");
    diagonal = std::clamp(call.IntegersOf(1)->front(), -rows, x.back());
  }
  const std::string sizes = call.definitions().Struct(
      "trilu", Braced({Product(x, 0, x.size() - 2), rows, x.back(),
                       static_cast<std::int64_t>(ElementBytes(call.InputValue(0).dtype)), diagonal,
                       given.upper ? 1 : 0}));
  return fmt::format("rewire_embedded_trilu_elements(&{}, {}, {});", sizes, call.Input(0), call.Output());
}

constexpr EmbeddedKernel kMovementKernels[] = {
    {names::kCopy, 1, 0, Copy},
    {names::kTranspose, 1, 0, Transpose},
    {names::kExpand, 1, 0, Expand},
    {names::kTile, 1, 0, Tile},
    {names::kConcat, 1, 1, Concat},
    {names::kSplit, 1, 1, Split},
    {names::kSlice, 1, 0, Slice},
    {names::kGather, 2, 0, Gather},
    {names::kGatherElements, 2, 1, GatherElements},
    {names::kTrilu, 1, 2, Trilu, nullptr, nullptr, 1},
};

}  // namespace

std::span<const EmbeddedKernel> MovementKernels() { return kMovementKernels; }

}  // namespace rewire::aot

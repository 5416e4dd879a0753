// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "rewire/tests/fuzz/kernels/generator.h"

namespace rewire::test {
namespace {

using Shape = std::vector<std::int64_t>;

const std::vector<DLDataType> kTypes = {
    {kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLInt, 64, 1},
    {kDLInt, 32, 1},   {kDLInt, 16, 1},   {kDLInt, 8, 1},    {kDLUInt, 64, 1},   {kDLUInt, 32, 1},
    {kDLUInt, 16, 1},  {kDLUInt, 8, 1},   {6, 8, 1},         {kDLFloat, 32, 4},  {kDLInt, 4, 1},
    {kDLUInt, 1, 1},   {kDLInt, 8, 3},    {kDLFloat, 64, 2}, {kDLInt, 128, 1},   {5, 64, 1},
    {kDLUInt, 24, 1}};

std::int64_t HostileDim(Dice& dice) {
  static const Shape kDims = {0, 0, 1, 2, 3, 5, 17, 63, 64, 65, 127, 257, 1000, 4097, 1 << 16};
  return dice.Of(kDims);
}
// Only beside a 0 can a tensor have such dimensions.
std::int64_t HugeDim(Dice& dice) {
  static const Shape kDims = {std::int64_t{1} << 31,
                              std::int64_t{1} << 40,
                              std::int64_t{1} << 62,
                              std::numeric_limits<std::int64_t>::max(),
                              3037000500,
                              1 << 30};
  return dice.Of(kDims);
}
std::int64_t HostileInt(Dice& dice) {
  static const Shape kInts = {0,
                              1,
                              -1,
                              2,
                              -2,
                              3,
                              7,
                              8,
                              16,
                              17,
                              31,
                              63,
                              64,
                              127,
                              128,
                              -128,
                              255,
                              256,
                              1 << 16,
                              1 << 20,
                              1 << 24,
                              1 << 30,
                              (std::int64_t{1} << 31) - 1,
                              std::int64_t{1} << 31,
                              -(std::int64_t{1} << 31),
                              std::int64_t{1} << 32,
                              std::int64_t{1} << 40,
                              std::int64_t{1} << 48,
                              std::int64_t{1} << 60,
                              std::int64_t{1} << 62,
                              std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::min()};
  return dice.Of(kInts);
}
double HostileFloat(Dice& dice) {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> kFloats = {0,
                                              -0.0,
                                              1,
                                              -1,
                                              1e-300,
                                              -1e-300,
                                              1e-30,
                                              1e-9,
                                              1e9,
                                              1e30,
                                              1e300,
                                              -1e300,
                                              0x1p63,
                                              Limits::infinity(),
                                              -Limits::infinity(),
                                              Limits::quiet_NaN(),
                                              0.5};
  return dice.Of(kFloats);
}

void SpoilShape(Dice& dice, Argument* argument) {
  Shape& shape = argument->shape;
  switch (dice.Below(6)) {
    case 0:
      if (!shape.empty())
        shape[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(shape.size())))] =
            HostileDim(dice);
      return;
    case 1:
      shape.insert(shape.begin() +
                       static_cast<std::ptrdiff_t>(dice.Below(static_cast<std::int64_t>(shape.size()) + 1)),
                   dice.OneIn(2) ? 1 : HostileDim(dice));
      return;
    case 2:
      if (!shape.empty())
        shape.erase(shape.begin() +
                    static_cast<std::ptrdiff_t>(dice.Below(static_cast<std::int64_t>(shape.size()))));
      return;
    case 3:  // empty, of huge dimensions
      for (std::int64_t& dim : shape) dim = dice.OneIn(2) ? HugeDim(dice) : dim;
      if (!shape.empty())
        shape[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(shape.size())))] = 0;
      argument->null_data = dice.OneIn(2);
      return;
    case 4:
      shape.resize(static_cast<std::size_t>(dice.Below(34)), 1);
      return;
    default:
      if (shape.size() > 1)
        std::swap(shape[0],
                  shape[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(shape.size())))]);
  }
}

void SpoilValues(Dice& dice, Argument* argument) {
  argument->seed = dice.Next();
  if (!argument->values.empty() && !dice.OneIn(4)) {
    argument
        ->values[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(argument->values.size())))] =
        HostileInt(dice);
    return;
  }
  argument->values.clear();
  static const std::vector<Fill> kFills = {Fill::kSmall,   Fill::kOrdinary, Fill::kSpecial,
                                           Fill::kSpecial, Fill::kBytes,    Fill::kZero};
  argument->fill = dice.Of(kFills);
}

void SpoilArgument(Dice& dice, Call* call) {
  const auto count = static_cast<std::int64_t>(call->arguments.size());
  const auto at = static_cast<std::size_t>(dice.Below(count));
  Argument& argument = call->arguments[at];
  switch (dice.Below(12)) {
    case 0:
    case 1:
    case 2:
      return SpoilShape(dice, &argument);
    case 3:
    case 4:
    case 5:
      return SpoilValues(dice, &argument);
    case 6:
      argument.dtype = dice.Of(kTypes);
      return;
    case 7: {  // all arguments of this dtype get another one
      const DLDataType before = argument.dtype, after = dice.Of(kTypes);
      for (Argument& each : call->arguments) {
        if (each.dtype.code == before.code && each.dtype.bits == before.bits) each.dtype = after;
      }
      return;
    }
    case 8:
      argument.missing = !argument.missing;
      return;
    case 9:
      argument.layout = static_cast<int>(dice.Below(4));
      argument.byte_offset = static_cast<std::uint64_t>(dice.OneIn(2) ? 0 : 8 * dice.Below(9));
      return;
    case 10:
      argument.alias = static_cast<int>(dice.Below(count));
      argument.alias_offset = static_cast<std::uint64_t>(dice.OneIn(2) ? 0 : dice.Below(64));
      return;
    default:
      argument.elements = static_cast<int>(dice.Below(6));
      if (dice.OneIn(2)) {
        call->arguments.emplace_back(argument);
      } else if (count > 1) {
        call->arguments.erase(call->arguments.begin() + static_cast<std::ptrdiff_t>(at));
      }
  }
}

void SpoilAttribute(const KernelOf& kernel, Dice& dice, Call* call) {
  auto& attributes = call->attributes;
  const auto& known = kernel.attributes[static_cast<std::size_t>(
      dice.Below(static_cast<std::int64_t>(kernel.attributes.size())))];
  if (dice.OneIn(12)) {
    attributes.emplace_back(dice.OneIn(2) ? "unknown" : known.name, std::int64_t{1});
    return;
  }
  auto found = std::find_if(attributes.begin(), attributes.end(),
                            [&](const auto& each) { return each.first == known.name; });
  if (found != attributes.end() && dice.OneIn(8)) {
    attributes.erase(found);
    return;
  }
  if (found == attributes.end()) found = attributes.insert(attributes.end(), {known.name, std::monostate()});
  AttributeValue& value = found->second;
  const int kind = dice.OneIn(10) ? static_cast<int>(dice.Below(6)) : static_cast<int>(known.kind);
  if (kind == AttributeOf::kInt) value = HostileInt(dice);
  if (kind == AttributeOf::kFloat) value = HostileFloat(dice);
  if (kind == AttributeOf::kString)
    value = known.choices.empty() || dice.OneIn(8) ? std::string("nonsense") : dice.Of(known.choices);
  if (kind == AttributeOf::kInts) {
    auto* ints = std::get_if<Shape>(&value);
    if (ints == nullptr) ints = &value.emplace<Shape>();
    if (ints->empty() || dice.OneIn(4)) ints->resize(static_cast<std::size_t>(dice.Below(9)), 1);
    if (!ints->empty())
      (*ints)[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(ints->size())))] =
          HostileInt(dice);
  }
  if (kind == AttributeOf::kFloats)
    value = std::vector<double>(static_cast<std::size_t>(dice.Below(6)), HostileFloat(dice));
}

}  // namespace

void Spoil(const KernelOf& kernel, Dice& dice, Call* call) {
  if (!kernel.attributes.empty() && dice.OneIn(3)) return SpoilAttribute(kernel, dice, call);
  if (!call->arguments.empty()) SpoilArgument(dice, call);
}

}  // namespace rewire::test

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/generator.h"

#include <algorithm>
#include <map>

#include "rewire/tests/fuzz/kernels/seeds.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::test {
namespace {

using Shape = std::vector<std::int64_t>;

const std::vector<DLDataType> kUsualTypes = {{kDLFloat, 32, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1},
                                             {kDLInt, 64, 1},   {kDLInt, 32, 1},   {kDLUInt, 8, 1},
                                             {kDLInt, 8, 1},    {6, 8, 1}};

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::int64_t SmallDim(Dice& dice) {
  static const Shape kDims = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64};
  return dice.Of(kDims);
}

// One dimension rules, so that different arguments agree often.
struct Style {
  explicit Style(Dice& dice)
      : dim(1 + dice.Below(5)), rank(static_cast<int>(dice.Below(6))), dtype(dice.Of(kUsualTypes)) {
    if (!dice.OneIn(40)) return;
    // Large along one axis: work that takes so long that the kernel has to ask whether to go on.
    rank = 1 + static_cast<int>(dice.Below(4));
    dim = 1 + dice.Below(2);
    large_axis = static_cast<int>(dice.Below(rank));
    large = std::int64_t{1} << (15 + dice.Below(3));
  }
  std::int64_t dim;
  int rank;
  DLDataType dtype;
  int large_axis = -1;
  std::int64_t large = 0;

  Shape MakeShape(Dice& dice) const {
    Shape shape(static_cast<std::size_t>(dice.OneIn(6) ? dice.Below(6) : rank), dim);
    for (std::int64_t& d : shape) {
      if (large == 0 && dice.OneIn(5)) d = SmallDim(dice);
    }
    if (large != 0 && static_cast<std::size_t>(large_axis) < shape.size() && !dice.OneIn(4))
      shape[static_cast<std::size_t>(large_axis)] = large;
    return shape;
  }
};

DLDataType AnyOf(std::uint32_t dtypes, Dice& dice) {
  static const std::vector<std::pair<std::uint32_t, DLDataType>> kTypes = {
      {REWIRE_DTYPE_F32, {kDLFloat, 32, 1}},  {REWIRE_DTYPE_F64, {kDLFloat, 64, 1}},
      {REWIRE_DTYPE_F16, {kDLFloat, 16, 1}},  {REWIRE_DTYPE_BF16, {4, 16, 1}},
      {REWIRE_DTYPE_I8, {kDLInt, 8, 1}},      {REWIRE_DTYPE_I16, {kDLInt, 16, 1}},
      {REWIRE_DTYPE_I32, {kDLInt, 32, 1}},    {REWIRE_DTYPE_I64, {kDLInt, 64, 1}},
      {REWIRE_DTYPE_U8, {kDLUInt, 8, 1}},     {REWIRE_DTYPE_U16, {kDLUInt, 16, 1}},
      {REWIRE_DTYPE_U32, {kDLUInt, 32, 1}},   {REWIRE_DTYPE_U64, {kDLUInt, 64, 1}},
      {REWIRE_DTYPE_BOOL, {6, 8, 1}},         {REWIRE_DTYPE_OTHER_16, {5, 128, 1}},
      {REWIRE_DTYPE_OTHER_8, {5, 64, 1}},     {REWIRE_DTYPE_NARROW, {kDLInt, 4, 1}},
      {REWIRE_DTYPE_NARROW, {kDLUInt, 2, 1}}, {REWIRE_DTYPE_NARROW, {10, 8, 1}},
      {REWIRE_DTYPE_NARROW, {12, 8, 1}},      {REWIRE_DTYPE_NARROW, {14, 8, 1}},
      {REWIRE_DTYPE_NARROW, {17, 4, 1}}};
  std::vector<DLDataType> possible;
  for (const auto& [bit, type] : kTypes) {
    if ((dtypes & bit) != 0) possible.push_back(type);
  }
  return possible.empty() ? dice.Of(kUsualTypes) : dice.Of(possible);
}

Argument MakeArgument(const KernelOf& kernel, const ParameterOf& parameter, DLDataType dtype,
                      const Style& style, Dice& dice) {
  Argument argument;
  argument.seed = dice.Next();
  argument.dtype = dtype;
  argument.shape = style.MakeShape(dice);
  argument.fill = dice.OneIn(3) ? Fill::kOrdinary : Fill::kSmall;
  if (parameter.one_element) argument.shape = dice.OneIn(3) ? Shape{1} : Shape{};
  // A shape function takes shapes as values.
  if (Has(kernel.entry.name, "rewire.shape.") && !parameter.one_element) {
    argument.shape = {style.rank};
    for (int i = 0; i < std::max(1, style.rank); ++i)
      argument.values.push_back(dice.OneIn(5) ? SmallDim(dice) : style.dim);
  }
  if (parameter.name == "seq") {
    argument.sequence = true;
    argument.elements = static_cast<int>(dice.Below(5));
  }
  return argument;
}

AttributeValue MakeValue(const AttributeOf& attribute, const Style& style, Dice& dice) {
  switch (attribute.kind) {
    case AttributeOf::kInt: {
      if (attribute.least == 0 && attribute.most == 0) return std::int64_t{dice.Below(6) - 2};
      const std::int64_t span =
          std::min<std::int64_t>(attribute.most - attribute.least, dice.OneIn(4) ? 40 : 4);
      return attribute.least + dice.Below(span + 1);
    }
    case AttributeOf::kFloat: {
      static const std::vector<double> kFloats = {0, 1, 0.5, 2, -1, 1e-3, 0.25};
      return dice.Of(kFloats);
    }
    case AttributeOf::kString:
      return attribute.choices.empty() ? std::string() : dice.Of(attribute.choices);
    case AttributeOf::kInts: {
      const Shape lengths = {style.rank, style.rank - 2, 2 * style.rank, 2 * (style.rank - 2), 1, 2, 3, 4, 0};
      Shape values(static_cast<std::size_t>(std::max<std::int64_t>(0, dice.Of(lengths))));
      for (std::int64_t& value : values) value = dice.OneIn(4) ? dice.Below(8) - 3 : 1 + dice.Below(3);
      return values;
    }
    case AttributeOf::kFloats:
      return std::vector<double>(static_cast<std::size_t>(dice.Below(4)), 0.5);
  }
  return std::monostate();
}

}  // namespace

Call NearlyValid(const KernelOf& kernel, Dice& dice) {
  Call call;
  const Style style(dice);
  if (!dice.OneIn(8) && SeedOf(kernel.entry.name, dice, &call)) return call;
  for (const AttributeOf& attribute : kernel.attributes) {
    if (attribute.required || dice.OneIn(3))
      call.attributes.emplace_back(attribute.name, MakeValue(attribute, style, dice));
  }
  std::map<int, DLDataType> groups;
  // Optional arguments in front of others may be left out only as None.
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ParameterOf& parameter = kernel.parameters[i];
    const int count = parameter.list ? 1 + static_cast<int>(dice.Below(3)) : 1;
    for (int k = 0; k < count; ++k) {
      DLDataType& of_group = groups[parameter.dtype_group];
      if (parameter.dtype_group == 0 || of_group.bits == 0) of_group = AnyOf(parameter.dtypes, dice);
      call.arguments.push_back(MakeArgument(kernel, parameter, of_group, style, dice));
      if (parameter.optional) call.arguments.back().missing = dice.OneIn(2);
    }
  }
  return call;
}

}  // namespace rewire::test

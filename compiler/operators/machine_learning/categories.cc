// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml that look categories up. Strings of lists that are known when compiling are looked
// up then (lower/string_tables.h), others by a kernel.
#include <algorithm>
#include <map>
#include <numeric>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/compiler/operators/texts.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// True where x, with an axis more, is one of the numbers.
Value* MatchesOf(Op& op, Value* x, Value* numbers) {
  Shape dims = x->type.dims;
  dims.emplace_back(1);
  return op.Compare(names::kEqual, op.Reshape(x, dims), numbers);
}

Value* ElementsAt(Op& op, Value* list, Value* positions) {
  return op.Call(names::kGather, {list, positions}, {{"axis", std::int64_t{0}}},
                 TensorOf(list->type.dtype, positions->type.dims));
}

// The place of each string in `keys`, the last of several; -1 if nowhere.
Ints PositionsIn(const Strings& keys, const Strings& strings) {
  std::map<std::string, std::int64_t> at;
  for (std::size_t i = 0; i < keys.size(); ++i) at[keys[i]] = static_cast<std::int64_t>(i);
  Ints positions;
  for (const std::string& text : strings) {
    const auto found = at.find(text);
    positions.push_back(found == at.end() ? -1 : found->second);
  }
  return positions;
}

// The same for each element of x, which is strings.
Value* KeyOf(Op& op, Value* x, const Strings& keys) {
  if (const Strings* strings = op.lowering().strings().Find(x))
    return ElementsAt(op, op.IntsValue(PositionsIn(keys, *strings)), x);
  return PositionsInKeys(op, TextTensorOf(op, x), keys);
}

// The value at the first place of each element of x in `keys`, or `other`.
Value* LookedUp(Op& op, Value* x, Value* keys, Value* values, Value* other) {
  return op.Call(names::kLookUp, {x, op.Cast(keys, x->type.dtype), values, op.Reshape(other, {1})}, {},
                 TensorOf(values->type.dtype, x->type.dims));
}

// 1 for each number that no later one equals, else 0; empty if all differ.
Ints LastPlaces(const Ints& numbers) {
  std::map<std::int64_t, std::size_t> last;
  for (std::size_t i = 0; i < numbers.size(); ++i) last[numbers[i]] = i;
  if (last.size() == numbers.size()) return {};
  Ints places(numbers.size(), 0);
  for (const auto& [number, place] : last) places[place] = 1;
  return places;
}

Status LowerOneHotEncoder(Op& op, const Operator& /*row*/) {
  const Strings names = TextsOf(op, "cats_strings");
  Ints numbers = op.IntList("cats_int64s");
  if (names.empty() == numbers.empty()) return op.Invalid("it has no categories, or two lists of them");
  const bool is_strings = op.lowering().strings().Has(op.in(0));
  if (is_strings == names.empty())
    return op.Unsupported("categories are {}, X is not", names.empty() ? "numbers" : "strings");
  Value* x = op.Cast(op.in(0), kInt64);
  if (is_strings) {
    x = KeyOf(op, x, names);
    for (std::size_t i = 0; i < names.size(); ++i) numbers.push_back(static_cast<std::int64_t>(i));
  }
  Value* categories = op.IntsValue(numbers);
  const Ints places = LastPlaces(numbers);
  const auto matches_of = [&](Value* elements) {
    Value* matches = MatchesOf(op, elements, categories);
    return places.empty() ? matches : op.Compare(names::kAnd, matches, op.Cast(op.IntsValue(places), kBool8));
  };
  Value* matches = matches_of(x);
  if (op.Int("zeros", 1) == 0) {
    // An unknown category fails the run: it stands behind the last one, where there is nothing to be
    // gathered.
    Ints all(numbers.size());
    std::iota(all.begin(), all.end(), 0);
    Value* behind = op.IntValue(static_cast<std::int64_t>(numbers.size()));
    matches = matches_of(ElementsAt(op, categories, LookedUp(op, x, categories, op.IntsValue(all), behind)));
  }
  op.Set(0, op.Cast(matches, kFloat32));
  return {};
}

// One side of a mapping: a list of numbers or of strings.
struct Column {
  Value* numbers = nullptr;
  std::optional<Strings> strings;

  std::int64_t size() const {
    return strings ? static_cast<std::int64_t>(strings->size())
                   : numbers->type.dims[0].constant().value_or(0);
  }
};

// The attribute "keys_floats", "keys_int64s", "keys_strings" or "keys_tensor", for the prefix "keys".
Result<std::optional<Column>> ColumnOf(Op& op, const std::string& prefix) {
  std::optional<Column> column;
  int given = 0;
  if (op.HasAttribute(prefix + "_floats") && ++given > 0)
    column = Column{FloatsValue(op, op.FloatList(prefix + "_floats")), {}};
  if (op.HasAttribute(prefix + "_int64s") && ++given > 0)
    column = Column{op.IntsValue(op.IntList(prefix + "_int64s")), {}};
  if (op.HasAttribute(prefix + "_strings") && ++given > 0)
    column = Column{nullptr, TextsOf(op, prefix + "_strings")};
  if (const onnx::AttributeProto* tensor = op.Find(prefix + "_tensor"); tensor != nullptr && ++given > 0) {
    if (tensor->t().data_type() == onnx::TensorProto::STRING) {
      column = Column{nullptr, Strings(tensor->t().string_data().begin(), tensor->t().string_data().end())};
    } else {
      Result<HostTensor> numbers = op.TensorAttribute(prefix + "_tensor");
      if (!numbers) return Forward(numbers);
      Value* value = op.Constant(*std::move(numbers));
      column = Column{op.Reshape(value, {ProductOf(value->type.dims)}), {}};
    }
  }
  if (given > 1) return op.Invalid("it has several lists of {}", prefix);
  return column;
}

// The value that stands for a key that is not in the list.
struct Fallback {
  Value* number = nullptr;
  std::string text = "_Unused";
};

Result<Fallback> FallbackOf(Op& op, const Column& values) {
  Fallback fallback;
  const onnx::AttributeProto* tensor = op.Find("default_tensor");
  if (values.strings) {
    fallback.text = TextOf(op, "default_string", "_Unused");
    if (tensor != nullptr) {
      if (tensor->t().string_data_size() != 1) return op.Invalid("default_tensor is not one string");
      fallback.text = tensor->t().string_data(0);
    }
  } else if (tensor != nullptr) {
    Result<HostTensor> number = op.TensorAttribute("default_tensor");
    if (!number) return Forward(number);
    Value* value = op.Constant(*std::move(number));
    if (!ProductOf(value->type.dims).Is(1)) return op.Invalid("default_tensor has not one element");
    fallback.number = op.Cast(op.Reshape(value, {}), values.numbers->type.dtype);
  } else {
    const DLDataType dtype = values.numbers->type.dtype;
    fallback.number = IsFloat(dtype) ? op.Scalar(dtype, op.Float("default_float", -0.0))
                                     : op.Cast(op.IntValue(op.Int("default_int64", -1)), dtype);
  }
  return fallback;
}

// Maps x by the two lists of equal length. Where strings come out, they are positions in a list of their own.
Status SetMapped(Op& op, const Column& keys, Column values, Fallback fallback) {
  Value* x = op.in(0);
  const bool is_strings = op.lowering().strings().Has(x);
  if (keys.size() < 1 || keys.size() != values.size())
    return op.Invalid("{} keys for {} values", keys.size(), values.size());
  if (is_strings != keys.strings.has_value())
    return op.Unsupported("keys are {}, X is not", keys.strings ? "strings" : "numbers");
  StringPositions positions;
  if (values.strings) {
    Ints places;
    for (const std::string& text : *values.strings) places.push_back(positions.Of(text));
    values.numbers = op.IntsValue(places);
    fallback.number = op.IntValue(positions.Of(fallback.text));
  }
  if (is_strings) {
    Value* which = KeyOf(op, x, *keys.strings);
    Value* found = op.Compare(names::kGreaterEqual, which, op.IntValue(0));
    Value* value = ElementsAt(op, values.numbers, op.Apply(names::kMax, which, op.IntValue(0)));
    op.Set(0, op.Call(names::kWhere, {found, value, fallback.number}, {}, value->type));
  } else {
    const DLDataType dtype = keys.numbers->type.dtype;
    if (IsFloat(dtype) != IsFloat(x->type.dtype) ||
        (!IsFloat(dtype) && ElementBytes(dtype) != ElementBytes(x->type.dtype)))
      return op.Unsupported("keys are of another type than {}", DTypeName(x->type.dtype));
    op.Set(0, LookedUp(op, x, keys.numbers, values.numbers, fallback.number));
  }
  if (values.strings && op.Wants(0))
    op.lowering().strings().Set(op.scope().Find(op.node().output(0)), positions.Take());
  return {};
}

Status LowerLabelEncoder(Op& op, const Operator& /*row*/) {
  const Result<std::optional<Column>> keys = ColumnOf(op, "keys");
  if (!keys) return Forward(keys);
  const Result<std::optional<Column>> values = ColumnOf(op, "values");
  if (!values) return Forward(values);
  if (!*keys || !*values) return op.Invalid("the list of {} is missing", *keys ? "values" : "keys");
  const Result<Fallback> fallback = FallbackOf(op, **values);
  if (!fallback) return Forward(fallback);
  return SetMapped(op, **keys, **values, *fallback);
}

// Strings to numbers, or numbers to strings, by the two lists.
Status LowerCategoryMapper(Op& op, const Operator& /*row*/) {
  const Column strings{nullptr, TextsOf(op, "cats_strings")};
  const Column numbers{op.IntsValue(op.IntList("cats_int64s")), {}};
  const Fallback fallback{op.IntValue(op.Int("default_int64", -1)), TextOf(op, "default_string", "_Unused")};
  const bool from_strings = op.lowering().strings().Has(op.in(0));
  return from_strings ? SetMapped(op, strings, numbers, fallback) : SetMapped(op, numbers, strings, fallback);
}

// The maps are a tensor: a row for each, a column for each key. The executable's metadata has the keys.
Status LowerZipMap(Op& op, const Operator& /*row*/) {
  const Ints numbers = op.IntList("classlabels_int64s");
  const Strings strings = TextsOf(op, "classlabels_strings");
  if (numbers.empty() == strings.empty()) return op.Invalid("it has no keys, or two lists of them");
  Value* x = op.in(0);
  if (x->type.rank() == 1) x = op.Reshape(x, {1, x->type.dims[0]});
  const std::size_t count = numbers.size() + strings.size();
  if (x->type.rank() != 2 ||
      (x->type.dims[1].IsConstant() && !x->type.dims[1].Is(static_cast<std::int64_t>(count))))
    return op.Invalid("X has shape {} with {} keys", ShapeText(x->type.dims), count);
  // A value of its own: the same scores may be an output without keys.
  op.Set(0, op.Unary(names::kCopy, x));
  if (!op.Wants(0)) return {};
  Value* maps = op.scope().Find(op.node().output(0));
  if (strings.empty())
    op.lowering().strings().SetKeys(maps, numbers);
  else
    op.lowering().strings().SetKeys(maps, strings);
  return {};
}

}  // namespace

std::span<const Operator> CategoryOperators() {
  static constexpr Operator kOperators[] = {
      {"CategoryMapper", 1, 0, 1, 1, "cats_int64s cats_strings default_int64 default_string",
       LowerCategoryMapper, nullptr, kTakesStrings},
      {"LabelEncoder", 2, 0, 1, 1,
       "~default_float ~default_int64 ~default_string ~default_tensor keys_floats keys_int64s keys_strings "
       "keys_tensor values_floats values_int64s values_strings values_tensor",
       LowerLabelEncoder, nullptr, kTakesStrings},
      {"OneHotEncoder", 1, 0, 1, 1, "cats_int64s cats_strings zeros", LowerOneHotEncoder, nullptr,
       kTakesStrings},
      {"ZipMap", 1, 0, 1, 1, "classlabels_int64s classlabels_strings", LowerZipMap},
  };
  return kOperators;
}

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/static_value.h"

#include "rewire/vm/value/shape.h"

namespace rewire::aot {

const char* KindName(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kUndefined:
      return "nothing";
    case Value::Kind::kInteger:
      return "an integer";
    case Value::Kind::kTensor:
      return "a tensor";
    case Value::Kind::kAdt:
      return "an ADT";
    case Value::Kind::kClosure:
      return "a closure";
    case Value::Kind::kStorage:
      return "a storage";
  }
  return "nothing";
}

Value IntegerValue(std::int64_t value, bool is_narrow) {
  Value result;
  result.kind = Value::Kind::kInteger;
  result.number.value = value;
  result.is_narrow = is_narrow;
  return result;
}

std::string TensorText(const Value& tensor) {
  return DTypeName(tensor.dtype) + ShapeText({tensor.dims.data(), tensor.dims.size()});
}

std::uint64_t ElementsOf(const std::vector<std::int64_t>& dims) {
  std::uint64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= static_cast<std::uint64_t>(dim);
  return elements;
}

}  // namespace rewire::aot

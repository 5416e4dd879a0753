// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value.h"

#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

const char* ValueKindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNone:
      return "nothing";
    case ValueKind::kTensor:
      return "tensor";
    case ValueKind::kInteger:
      return "integer";
    case ValueKind::kAdt:
      return "ADT";
    case ValueKind::kClosure:
      return "closure";
    case ValueKind::kStorage:
      return "storage";
  }
  return "unknown";
}

Value::Value(Tensor tensor) {
  if (tensor.object_ == nullptr) return;
  any_ = MakeAny(kTensorKind, tensor.object_);
  tensor.object_ = nullptr;
}

Value::Value(std::int64_t integer) : any_(MakeInteger(kInt64Kind, integer)) {}

Result<Value> Value::Adt(std::uint32_t tag, Span<const Value> fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind() == ValueKind::kNone ||
        (fields[i].kind() == ValueKind::kTensor && !IsContiguous(fields[i].tensor().dl()))) {
      return Fail(StatusCode::kInvalidArgument, "ADT: field {}{}", i,
                  fields[i].kind() == ValueKind::kNone ? " is empty"
                                                       : " is a strided tensor; copy it with Tensor::CopyOf");
    }
  }
  TupleObject* tuple = NewSharedTuple(kAdtKind, tag, static_cast<std::uint32_t>(fields.size()));
  if (tuple == nullptr) return Fail(StatusCode::kOutOfMemory, "ADT: no memory");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    tuple->fields()[i] = Value(fields[i]).Release();
  }
  return Adopt(MakeAny(kAdtKind, tuple));
}

Value::Value(const Value& other) : any_(other.any_) {
  if (IsObjectKind(any_.type_index)) ObjectOf(any_)->AddStrong();
}

Value::~Value() {
  if (IsObjectKind(any_.type_index)) DropStrong(ObjectOf(any_));
}

ValueKind Value::kind() const {
  switch (any_.type_index) {
    case kTensorKind:
      return ValueKind::kTensor;
    case kInt32Kind:
    case kInt64Kind:
      return ValueKind::kInteger;
    case kAdtKind:
      return ValueKind::kAdt;
    case kClosureKind:
      return ValueKind::kClosure;
    case kStorageKind:
      return ValueKind::kStorage;
    default:
      return ValueKind::kNone;
  }
}

Tensor Value::tensor() const {
  if (kind() != ValueKind::kTensor) return {};
  TensorOf(any_)->AddStrong();
  return Tensor(TensorOf(any_));
}

std::int64_t Value::integer() const { return kind() == ValueKind::kInteger ? any_.v_int64 : 0; }

std::uint32_t Value::tag() const { return kind() == ValueKind::kAdt ? TupleOf(any_)->tag : 0; }

std::uint32_t Value::field_count() const { return kind() == ValueKind::kAdt ? TupleOf(any_)->count : 0; }

Value Value::field(std::uint32_t index) const {
  if (index >= field_count()) return {};
  const RewireFFIAny& any = TupleOf(any_)->fields()[index];
  if (IsObjectKind(any.type_index)) ObjectOf(any)->AddStrong();
  return Adopt(any);
}

}  // namespace rewire

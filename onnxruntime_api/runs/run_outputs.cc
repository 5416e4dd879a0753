// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/runs/run_outputs.h"

#include <cstring>

#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/string_parts.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

using Body = std::shared_ptr<ValueBody>;

Result<Body> TakeTensor(const Value& value, UsedMemory* used) {
  if (value.kind() == ValueKind::kInteger) {
    Result<Body> made = MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, {});
    if (made) *static_cast<std::int64_t*>((*made)->data) = value.integer();
    return made;
  }
  const Tensor tensor = value.tensor();
  if (!tensor) return Fail(StatusCode::kUnsupported, "a result is {}", ValueKindName(value.kind()));
  const TensorView view = tensor.view();
  // A host may write an output and keep others: each has memory of its own.
  Result<Body> body = FromTensor(tensor, used->Overlaps(view.data(), view.bytes()));
  if (body) used->Add((*body)->data, (*body)->bytes());
  return body;
}

std::string NameOf(const Port& port) { return "output '" + port.name + "'"; }

// The list of strings that positions stand for.
Result<std::vector<std::string>> ListOf(const Port& port, const VirtualMachine& vm) {
  if (port.list) return *port.list;
  const Result<Value> offsets = vm.TryOutput(port.parts->offsets);
  const Result<Value> bytes = vm.TryOutput(port.parts->bytes);
  if (!offsets) return Forward(offsets);
  if (!bytes) return Forward(bytes);
  const Result<Body> ends = FromTensor(offsets->tensor(), true);
  const Result<Body> text = FromTensor(bytes->tensor(), true);
  if (!ends) return Forward(ends);
  if (!text) return Forward(text);
  return ReadList({static_cast<const std::int64_t*>((*ends)->data), (*ends)->elements()},
                  {static_cast<const char*>((*text)->data), (*text)->elements()}, NameOf(port));
}

Result<Body> TakeStrings(const Port& port, const Value& value, const VirtualMachine& vm) {
  const Result<std::vector<std::string>> list = ListOf(port, vm);
  if (!list) return Forward(list);
  const Result<Body> positions = FromTensor(value.tensor(), true);
  if (!positions) return positions;
  if ((*positions)->type != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)
    return Fail(StatusCode::kRuntimeFailed, "output '{}' has no positions of strings", port.name);
  Result<std::vector<std::string>> strings = PickStrings(
      *list, {static_cast<const std::int64_t*>((*positions)->data), (*positions)->elements()}, NameOf(port));
  if (!strings) return Forward(strings);
  Result<Body> made = MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, (*positions)->shape);
  if (made) (*made)->strings = *std::move(strings);
  return made;
}

// A sequence of maps, of a tensor with a row for each.
Result<Body> TakeMaps(const Port& port, const Value& value) {
  const Result<Body> table = FromTensor(value.tensor(), true);
  if (!table) return table;
  const std::size_t columns = port.text_keys.empty() ? port.number_keys.size() : port.text_keys.size();
  const std::uint64_t row_bytes = columns * ElementBytes(DTypeOf((*table)->type));
  const std::size_t rows = (*table)->elements() / columns;
  auto sequence = std::make_shared<ValueBody>();
  sequence->kind = ONNX_TYPE_SEQUENCE;
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(columns)};
  for (std::size_t row = 0; row < rows; ++row) {
    const bool is_text = !port.text_keys.empty();
    Result<Body> keys = MakeTensor(
        is_text ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, shape);
    Result<Body> values = MakeTensor((*table)->type, shape);
    if (!keys) return keys;
    if (!values) return values;
    if (is_text) {
      (*keys)->strings = port.text_keys;
    } else {
      std::memcpy((*keys)->data, port.number_keys.data(), (*keys)->bytes());
    }
    std::memcpy((*values)->data, static_cast<const char*>((*table)->data) + row * row_bytes, row_bytes);
    auto map = std::make_shared<ValueBody>();
    map->kind = ONNX_TYPE_MAP;
    map->parts = {*keys, *values};
    sequence->parts.push_back(std::move(map));
  }
  return sequence;
}

Result<Body> TakeSequence(const Value& value, UsedMemory* used) {
  auto body = std::make_shared<ValueBody>();
  body->kind = ONNX_TYPE_SEQUENCE;
  for (std::uint32_t i = 0; i < value.field_count(); ++i) {
    Result<Body> part = TakeTensor(value.field(i), used);
    if (!part) return part;
    body->parts.push_back(*std::move(part));
  }
  return body;
}

}  // namespace

void UsedMemory::Add(const void* data, std::uint64_t bytes) {
  if (bytes != 0) ranges_.push_back({static_cast<const char*>(data), static_cast<const char*>(data) + bytes});
}

bool UsedMemory::Overlaps(const void* data, std::uint64_t bytes) const {
  const char* const begin = static_cast<const char*>(data);
  for (const Range& range : ranges_) {
    if (bytes != 0 && begin < range.end && range.begin < begin + bytes) return true;
  }
  return false;
}

Result<Body> TakeOutput(const Port& port, const VirtualMachine& vm, UsedMemory* used) {
  const Result<Value> value = vm.TryOutput(port.place);
  if (!value) return Forward(value);
  if (port.has_keys()) return TakeMaps(port, *value);
  if (port.parts || port.list) return TakeStrings(port, *value, vm);
  if (value->kind() != ValueKind::kAdt) return TakeTensor(*value, used);
  if (port.type.kind != ONNX_TYPE_OPTIONAL) return TakeSequence(*value, used);
  if (value->field_count() == 0) {
    auto none = std::make_shared<ValueBody>();
    none->has_value = false;
    return none;
  }
  const Value inner = value->field(0);
  return inner.kind() == ValueKind::kAdt ? TakeSequence(inner, used) : TakeTensor(inner, used);
}

Status CopyInto(const ValueBody& from, const Port& port, ValueBody* to) {
  const bool is_tensor =
      from.kind == ONNX_TYPE_TENSOR && to->kind == ONNX_TYPE_TENSOR && from.type == to->type;
  const bool is_scalar = is_tensor && from.elements() == 1 && to->elements() == 1 &&
                         (to->shape.empty() || (from.shape.empty() && to->shape.size() == 1));
  if (is_scalar) to->shape = from.shape;
  if (!is_tensor || from.shape != to->shape)
    return Fail(StatusCode::kInvalidArgument, "output '{}' is given a value of another type or shape",
                port.name);
  if (from.is_string()) {
    to->strings = from.strings;
  } else if (from.bytes() != 0) {
    std::memmove(to->data, from.data, from.bytes());
  }
  return {};
}

}  // namespace rewire::onnxruntime_api

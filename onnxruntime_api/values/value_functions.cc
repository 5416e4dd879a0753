// SPDX-License-Identifier: Apache-2.0
//
// The functions of values: tensors, sequences and maps. string_values.cc has those of strings.
#include "rewire/base/message.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"
#include "rewire/onnxruntime_api/values/value.h"

namespace rewire::onnxruntime_api {
namespace {

// A tensor over the host's memory. `owner` frees it; null: the host does.
OrtStatus* Borrow(void* data, std::size_t bytes, std::shared_ptr<void> owner, const std::int64_t* shape,
                  std::size_t rank, ONNXTensorElementDataType type, OrtValue** out) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
    return InvalidArgument(
        "tensors of strings cannot lie in the caller's memory: use CreateTensorAsOrtValue");
  if (DTypeOf(type).bits == 0)
    return MakeStatus(ORT_NOT_IMPLEMENTED, "element type " + std::to_string(type) + " is not served");
  const Result<std::size_t> count = CountElements(shape, rank);
  if (!count) return FromError(count.error());
  auto body = std::make_shared<ValueBody>();
  body->type = type;
  body->shape.assign(shape, shape + rank);
  body->data = data;
  body->owner = std::move(owner);
  if (body->bytes() > bytes) {
    return InvalidArgument("not enough space: expected " + std::to_string(body->bytes()) + ", got " +
                           std::to_string(bytes));
  }
  if (data == nullptr && body->bytes() != 0) return InvalidArgument("the tensor's memory is null");
  return NewValue(std::move(body), out);
}

constexpr char kNoTensor[] = "OrtValue is expected to contain a tensor";
// Most functions have this code of ONNX Runtime's for a value of another kind.
OrtStatus* NoTensor() { return MakeStatus(ORT_RUNTIME_EXCEPTION, kNoTensor); }

bool IsValueOfMap(const ValueBody& tensor) {
  return tensor.is_string() || tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ||
         tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT ||
         tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
}

OrtStatus* CheckMap(const std::vector<std::shared_ptr<ValueBody>>& parts) {
  if (parts.size() != 2) return MakeStatus(ORT_FAIL, "For map type num_values MUST be 2");
  const ValueBody &keys = *parts[0], &values = *parts[1];
  if (keys.kind != ONNX_TYPE_TENSOR || values.kind != ONNX_TYPE_TENSOR) return NoTensor();
  if (keys.shape.size() > 1 || values.shape.size() > 1)
    return MakeStatus(ORT_FAIL, "Either the key tensor or the value tensor has NumDimensions > 1");
  if (keys.elements() != values.elements())
    return MakeStatus(ORT_FAIL, "Key and value tensors have unequal number of elements.");
  if (keys.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 && !keys.is_string())
    return MakeStatus(ORT_FAIL, "Key type is not supported yet.");
  if (!IsValueOfMap(values))
    return MakeStatus(ORT_FAIL,
                      std::string("Value type is not supported yet: ") + ElementTypeName(values.type));
  return nullptr;
}

OrtStatus* CheckSequence(const std::vector<std::shared_ptr<ValueBody>>& parts) {
  const ValueBody& first = *parts[0];
  if (first.kind != ONNX_TYPE_TENSOR && first.kind != ONNX_TYPE_MAP)
    return MakeStatus(ORT_FAIL, "Each element of the sequence should be either tensor or map.");
  for (const auto& part : parts) {
    if (part->kind != first.kind)
      return MakeStatus(ORT_FAIL, "At least one element in the sequence is of a type different from others.");
    if (part->type != first.type)
      return MakeStatus(ORT_FAIL,
                        "Sequences must have tensors of the same data type. There was at least one tensor in "
                        "the input that was different.");
  }
  return nullptr;
}

}  // namespace

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const std::int64_t* shape, std::size_t rank,
                                  ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    const Result<std::size_t> count = CountElements(shape, rank);
    if (!count) return FromError(count.error());
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING || allocator == DefaultOrtAllocator()) {
      Result<std::shared_ptr<ValueBody>> body =
          MakeTensor(type, std::vector<std::int64_t>(shape, shape + rank));
      if (!body) return FromError(body.error());
      return NewValue(*std::move(body), out);
    }
    const std::uint64_t bytes = *count * ElementBytes(DTypeOf(type));
    if (bytes == 0) return Borrow(nullptr, 0, nullptr, shape, rank, type, out);
    void* const data = allocator->Alloc(allocator, bytes);
    if (data == nullptr) return OutOfMemory();
    const auto free = [allocator](void* memory) { allocator->Free(allocator, memory); };
    return Borrow(data, bytes, std::shared_ptr<void>(data, free), shape, rank, type, out);
  });
}
OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo*, void* data, std::size_t bytes,
                                          const std::int64_t* shape, std::size_t rank,
                                          ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return Guard([&] { return Borrow(data, bytes, nullptr, shape, rank, type, out); });
}
OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, std::size_t bytes,
                                                    const std::int64_t* shape, std::size_t rank,
                                                    ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    OrtStatus* const failed = Borrow(data, bytes, nullptr, shape, rank, type, out);
    if (failed != nullptr) return failed;  // the memory stays the caller's
    const auto free = [deleter](void* memory) { deleter->Free(deleter, memory); };
    (*out)->body->owner.reset(data, free);
    return nullptr;
  });
}
void ReleaseValue(OrtValue* value) noexcept { delete value; }

OrtStatus* IsTensor(const OrtValue* value, int* out) noexcept {
  *out = value->body->kind == ONNX_TYPE_TENSOR && value->body->has_value ? 1 : 0;
  return nullptr;
}
OrtStatus* IsSparseTensor(const OrtValue*, int* out) noexcept {
  *out = 0;
  return nullptr;
}
OrtStatus* HasValue(const OrtValue* value, int* out) noexcept {
  *out = value->body->has_value ? 1 : 0;
  return nullptr;
}
OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) noexcept {
  *out = value->body->kind;
  return nullptr;
}
OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = value->body->has_value ? new OrtTypeInfo(TypeOf(*value->body)) : nullptr;
    return nullptr;
  });
}
OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (value->body->kind != ONNX_TYPE_TENSOR) return MakeStatus(ORT_FAIL, kNoTensor);
    *out = new OrtTensorTypeAndShapeInfo(InfoOf(*value->body));
    return nullptr;
  });
}
OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value, ONNXTensorElementDataType* type,
                                                     const std::int64_t** shape, std::size_t* rank) noexcept {
  if (value->body->kind != ONNX_TYPE_TENSOR) return Guard(NoTensor);
  *type = value->body->type;
  *rank = value->body->shape.size();
  *shape = *rank == 0 ? nullptr : value->body->shape.data();
  return nullptr;
}
OrtStatus* GetTensorData(const OrtValue* value, const void** out) noexcept {
  void* data = nullptr;
  OrtStatus* const status = GetTensorMutableData(const_cast<OrtValue*>(value), &data);
  *out = data;
  return status;
}
OrtStatus* GetTensorMutableData(OrtValue* value, void** out) noexcept {
  ValueBody& body = *value->body;
  if (body.kind != ONNX_TYPE_TENSOR) return Guard(NoTensor);
  *out = body.is_string() ? body.strings.data() : body.data;
  return nullptr;
}
OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** out) noexcept {
  if (value->body->kind != ONNX_TYPE_TENSOR) return Guard(NoTensor);
  *out = &HostMemory();
  return nullptr;
}
OrtStatus* GetTensorSizeInBytes(const OrtValue* value, std::size_t* out) noexcept {
  if (value->body->kind != ONNX_TYPE_TENSOR) return Guard([] { return InvalidArgument(kNoTensor); });
  if (value->body->is_string())
    return Guard([] { return InvalidArgument("String tensors are not supported by this API"); });
  *out = value->body->bytes();
  return nullptr;
}
OrtStatus* TensorAt(OrtValue* value, const std::int64_t* location, std::size_t count, void** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    const ValueBody& body = *value->body;
    if (body.kind != ONNX_TYPE_TENSOR) return NoTensor();
    if (body.is_string()) return InvalidArgument("this API does not support strings");
    if (count != body.shape.size()) return InvalidArgument("location dimensions do not match shape size");
    std::size_t index = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (location[i] < 0 || location[i] >= body.shape[i]) return InvalidArgument("invalid location range");
      index = index * static_cast<std::size_t>(body.shape[i]) + static_cast<std::size_t>(location[i]);
    }
    *out = static_cast<char*>(body.data) + index * ElementBytes(DTypeOf(body.type));
    return nullptr;
  });
}

OrtStatus* GetValueCount(const OrtValue* value, std::size_t* out) noexcept {
  const ValueBody& body = *value->body;
  if (body.kind != ONNX_TYPE_SEQUENCE && body.kind != ONNX_TYPE_MAP)
    return Guard([] { return MakeStatus(ORT_FAIL, "Input is not of type sequence or map."); });
  *out = body.parts.size();
  return nullptr;
}
OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator*, OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    const ValueBody& body = *value->body;
    if (body.kind != ONNX_TYPE_SEQUENCE && body.kind != ONNX_TYPE_MAP)
      return MakeStatus(ORT_FAIL, "Input is not of type sequence or map.");
    if (index < 0 || static_cast<std::size_t>(index) >= body.parts.size()) {
      return MakeStatus(ORT_FAIL, "index " + std::to_string(index) + " of a value with " +
                                      std::to_string(body.parts.size()) + " parts");
    }
    // A copy: what the host writes into one part does not change the whole.
    auto copy = std::make_shared<ValueBody>(*body.parts[static_cast<std::size_t>(index)]);
    if (copy->data != nullptr) {
      Result<std::shared_ptr<ValueBody>> made = MakeTensor(copy->type, copy->shape);
      if (!made) return FromError(made.error());
      __builtin_memcpy((*made)->data, copy->data, copy->bytes());
      copy = *std::move(made);
    }
    return NewValue(std::move(copy), out);
  });
}
OrtStatus* CreateValue(const OrtValue* const* parts, std::size_t count, ONNXType type,
                       OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (count == 0) return MakeStatus(ORT_FAIL, "Number of values should be at least 1.");
    auto body = std::make_shared<ValueBody>();
    body->kind = type;
    for (std::size_t i = 0; i < count; ++i) body->parts.push_back(parts[i]->body);
    OrtStatus* wrong = nullptr;
    if (type == ONNX_TYPE_SEQUENCE) {
      wrong = CheckSequence(body->parts);
    } else if (type == ONNX_TYPE_MAP) {
      wrong = CheckMap(body->parts);
    } else {
      wrong = MakeStatus(ORT_FAIL, "Input is not of type sequence or map.");
    }
    if (wrong != nullptr) return wrong;
    return NewValue(std::move(body), out);
  });
}

}  // namespace rewire::onnxruntime_api

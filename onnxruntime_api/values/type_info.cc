// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/values/type_info.h"

#include <algorithm>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

OrtStatus* Copy(const std::shared_ptr<const OrtTypeInfo>& type, OrtTypeInfo** out) {
  return Guard([&]() -> OrtStatus* {
    if (type == nullptr) return MakeStatus(ORT_FAIL, "the type says nothing about what it contains");
    *out = new OrtTypeInfo(*type);
    return nullptr;
  });
}

}  // namespace

OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* type, const OrtTensorTypeAndShapeInfo** out) noexcept {
  *out = type->kind == ONNX_TYPE_TENSOR ? &type->tensor : nullptr;
  return nullptr;
}
OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type, const OrtMapTypeInfo** out) noexcept {
  *out = type->kind == ONNX_TYPE_MAP ? &type->map : nullptr;
  return nullptr;
}
OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type, const OrtSequenceTypeInfo** out) noexcept {
  *out = type->kind == ONNX_TYPE_SEQUENCE ? &type->sequence : nullptr;
  return nullptr;
}
OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type, const OrtOptionalTypeInfo** out) noexcept {
  *out = type->kind == ONNX_TYPE_OPTIONAL ? &type->optional : nullptr;
  return nullptr;
}
OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type, ONNXType* out) noexcept {
  *out = type->kind;
  return nullptr;
}
OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* type, const char** denotation,
                                     std::size_t* length) noexcept {
  *denotation = type->denotation.c_str();
  *length = type->denotation.size();
  return nullptr;
}
OrtStatus* GetMapKeyType(const OrtMapTypeInfo* map, ONNXTensorElementDataType* out) noexcept {
  *out = map->key;
  return nullptr;
}
OrtStatus* GetMapValueType(const OrtMapTypeInfo* map, OrtTypeInfo** out) noexcept {
  return Copy(map->value, out);
}
OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* sequence, OrtTypeInfo** out) noexcept {
  return Copy(sequence->element, out);
}
OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional, OrtTypeInfo** out) noexcept {
  return Copy(optional->contained, out);
}
void ReleaseTypeInfo(OrtTypeInfo* type) noexcept { delete type; }
void ReleaseMapTypeInfo(OrtMapTypeInfo* map) noexcept { delete map; }
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo* sequence) noexcept { delete sequence; }

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  *out = new (std::nothrow) OrtTensorTypeAndShapeInfo;
  if (*out == nullptr) return OutOfMemory();
  // ONNX Runtime's new types are so until a host sets them.
  (*out)->type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  (*out)->has_shape = false;
  return nullptr;
}
OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType type) noexcept {
  info->type = type;
  return nullptr;
}
OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const std::int64_t* dims,
                         std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    info->has_shape = true;
    info->dims.assign(dims, dims + count);
    info->names.resize(count);
    return nullptr;
  });
}
OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names,
                                 std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    info->names.resize(count);
    for (std::size_t i = 0; i < count; ++i) info->names[i] = names[i] == nullptr ? "" : names[i];
    return nullptr;
  });
}
OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType* out) noexcept {
  *out = info->type;
  return nullptr;
}
OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, std::size_t* out) noexcept {
  *out = info->dims.size();
  return nullptr;
}
OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, std::int64_t* dims,
                         std::size_t count) noexcept {
  std::copy_n(info->dims.begin(), std::min(count, info->dims.size()), dims);
  return nullptr;
}
OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** names,
                                 std::size_t count) noexcept {
  for (std::size_t i = 0; i < std::min(count, info->names.size()); ++i) names[i] = info->names[i].c_str();
  return nullptr;
}
OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, std::size_t* out) noexcept {
  std::size_t count = info->has_shape ? 1 : 0;
  for (const std::int64_t dim : info->dims) {
    if (dim < 0) {
      *out = static_cast<std::size_t>(-1);  // what the interface says of open shapes
      return nullptr;
    }
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(dim), &count))
      return MakeStatus(ORT_FAIL, "the number of elements exceeds 2^64");
  }
  *out = count;
  return nullptr;
}
bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) noexcept { return info->has_shape; }
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) noexcept { delete info; }

}  // namespace rewire::onnxruntime_api

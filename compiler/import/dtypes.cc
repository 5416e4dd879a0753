// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/dtypes.h"

#include <iterator>

#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::compiler {
namespace {

// Types that came after the protobuf classes which Debian has.
struct NewType {
  std::int32_t number;
  const char* name;
  DLDataType dtype;
};

constexpr NewType kNewTypes[] = {
    {17, "FLOAT8E4M3FN", MakeDType(kFloat8E4M3FN, 8)},
    {18, "FLOAT8E4M3FNUZ", MakeDType(kFloat8E4M3FNUZ, 8)},
    {19, "FLOAT8E5M2", MakeDType(kFloat8E5M2, 8)},
    {20, "FLOAT8E5M2FNUZ", MakeDType(kFloat8E5M2FNUZ, 8)},
    {21, "UINT4", MakeDType(kUInt, 4)},
    {22, "INT4", MakeDType(kInt, 4)},
    {23, "FLOAT4E2M1", MakeDType(kFloat4E2M1FN, 4)},
    {24, "FLOAT8E8M0", MakeDType(kFloat8E8M0FNU, 8)},
    {25, "UINT2", MakeDType(kUInt, 2)},
    {26, "INT2", MakeDType(kInt, 2)},
};

const NewType* FindNewType(std::int32_t number) {
  for (const NewType& type : kNewTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace

std::optional<DLDataType> DTypeOfOnnx(std::int32_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT:
      return kFloat32;
    case onnx::TensorProto::UINT8:
      return kUInt8;
    case onnx::TensorProto::INT8:
      return kInt8;
    case onnx::TensorProto::UINT16:
      return MakeDType(kUInt, 16);
    case onnx::TensorProto::INT16:
      return MakeDType(kInt, 16);
    case onnx::TensorProto::INT32:
      return kInt32;
    case onnx::TensorProto::INT64:
      return kInt64;
    case onnx::TensorProto::BOOL:
      return kBool8;
    case onnx::TensorProto::FLOAT16:
      return kFloat16;
    case onnx::TensorProto::DOUBLE:
      return kFloat64;
    case onnx::TensorProto::UINT32:
      return MakeDType(kUInt, 32);
    case onnx::TensorProto::UINT64:
      return MakeDType(kUInt, 64);
    case onnx::TensorProto::COMPLEX64:
      return MakeDType(kComplex, 64);
    case onnx::TensorProto::COMPLEX128:
      return MakeDType(kComplex, 128);
    case onnx::TensorProto::BFLOAT16:
      return MakeDType(kBFloat, 16);
    default:
      break;
  }
  const NewType* type = FindNewType(data_type);
  return type != nullptr ? std::optional(type->dtype) : std::nullopt;
}

bool IsOnnxDType(DLDataType dtype) {
  for (std::int32_t number = 1; number <= std::rbegin(kNewTypes)->number; ++number) {
    const std::optional<DLDataType> known = DTypeOfOnnx(number);
    if (known && *known == dtype) return true;
  }
  return false;
}

std::string OnnxTypeName(std::int32_t data_type) {
  if (const NewType* type = FindNewType(data_type)) return type->name;
  if (onnx::TensorProto::DataType_IsValid(data_type)) {
    return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
  }
  return "data type " + std::to_string(data_type);
}

}  // namespace rewire::compiler

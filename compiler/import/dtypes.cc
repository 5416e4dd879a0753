// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/dtypes.h"

#include "rewire/compiler/import/onnx_proto.h"

namespace rewire::compiler {

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
      return std::nullopt;
  }
}

std::optional<DLDataType> PackedDTypeOfOnnx(std::int32_t data_type) {
  // ONNX's headers may be older than these types.
  switch (data_type) {
    case 21:
      return MakeDType(kUInt, 4);
    case 22:
      return MakeDType(kInt, 4);
    case 25:
      return MakeDType(kUInt, 2);
    case 26:
      return MakeDType(kInt, 2);
    default:
      return std::nullopt;
  }
}

std::string OnnxTypeName(std::int32_t data_type) {
  if (onnx::TensorProto::DataType_IsValid(data_type)) {
    return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
  }
  return "data type " + std::to_string(data_type);
}

}  // namespace rewire::compiler

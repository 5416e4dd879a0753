// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/values/tensor_types.h"

#include <array>

namespace rewire::onnxruntime_api {
namespace {

struct Row {
  ONNXTensorElementDataType type;
  DLDataType dtype;
  const char* name;
};

constexpr DLDataType kNoDType = {0, 0, 0};
constexpr std::array<Row, 21> kRows = {{
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, kNoDType, "undefined"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kFloat32, "float"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, kUInt8, "uint8"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, kInt8, "int8"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, MakeDType(kUInt, 16), "uint16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, MakeDType(kInt, 16), "int16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, kInt32, "int32"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, kInt64, "int64"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, kNoDType, "string"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, kBool8, "bool"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, kFloat16, "float16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, kFloat64, "double"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, MakeDType(kUInt, 32), "uint32"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, MakeDType(kUInt, 64), "uint64"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, MakeDType(kComplex, 64), "complex64"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, MakeDType(kComplex, 128), "complex128"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, MakeDType(kBFloat, 16), "bfloat16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, MakeDType(kFloat8E4M3FN, 8), "float8e4m3fn"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, MakeDType(kFloat8E4M3FNUZ, 8), "float8e4m3fnuz"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, MakeDType(kFloat8E5M2, 8), "float8e5m2"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, MakeDType(kFloat8E5M2FNUZ, 8), "float8e5m2fnuz"},
}};

const Row& RowOf(ONNXTensorElementDataType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < kRows.size() ? kRows[at] : kRows[0];
}

}  // namespace

DLDataType DTypeOf(ONNXTensorElementDataType type) { return RowOf(type).dtype; }

ONNXTensorElementDataType ElementTypeOf(DLDataType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype.bits != 0 && row.dtype == dtype) return row.type;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

const char* ElementTypeName(ONNXTensorElementDataType type) { return RowOf(type).name; }

std::string TensorTypeText(ONNXTensorElementDataType type) {
  return std::string("tensor(") + ElementTypeName(type) + ")";
}

}  // namespace rewire::onnxruntime_api

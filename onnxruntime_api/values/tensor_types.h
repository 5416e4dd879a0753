// SPDX-License-Identifier: Apache-2.0
//
// Element types of ONNX beside those of Rewire.
#pragma once

#include <string>

#include "rewire/base/dtype.h"
#include "rewire/onnxruntime_api/api.h"

namespace rewire::onnxruntime_api {

// A type with 0 bits if Rewire has none: strings, and types of less than a byte.
DLDataType DTypeOf(ONNXTensorElementDataType type);
ONNXTensorElementDataType ElementTypeOf(DLDataType dtype);
// "float", as ONNX spells it.
const char* ElementTypeName(ONNXTensorElementDataType type);
// "tensor(float)"
std::string TensorTypeText(ONNXTensorElementDataType type);

}  // namespace rewire::onnxruntime_api

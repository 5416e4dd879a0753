// SPDX-License-Identifier: Apache-2.0
//
// Types of a session's inputs and outputs, and of values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/onnxruntime_api/api.h"

struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = true;
  std::vector<std::int64_t> dims;  // -1: open
  std::vector<std::string> names;  // one for each dimension, "" for those that are known or have none
};

// These three give out the type that they contain as a new object.
struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtMapTypeInfo {
  ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::shared_ptr<const OrtTypeInfo> value;
};
struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> contained;
};

struct OrtTypeInfo {
  ONNXType kind = ONNX_TYPE_TENSOR;
  OrtTensorTypeAndShapeInfo tensor;  // of a tensor
  OrtSequenceTypeInfo sequence;      // of a sequence
  OrtMapTypeInfo map;                // of a map
  OrtOptionalTypeInfo optional;      // of an optional
  std::string denotation;
};

// SPDX-License-Identifier: Apache-2.0
//
// OrtValue: a tensor, a sequence or a map.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/allocator.h"
#include "rewire/onnxruntime_api/api.h"
#include "rewire/onnxruntime_api/values/type_info.h"
#include "rewire/vm/value.h"

namespace rewire::onnxruntime_api {

// ValueBody is the content of values. Handles share it: a binding's copy of a value is the same memory.
struct ValueBody {
  ONNXType kind = ONNX_TYPE_TENSOR;
  // These are of a tensor.
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> shape;
  void* data = nullptr;
  std::shared_ptr<void> owner;  // of `data`; null: the caller's memory
  std::vector<std::string> strings;
  // The elements of a sequence, or the keys and the values of a map.
  std::vector<std::shared_ptr<ValueBody>> parts;
  bool has_value = true;  // false: an optional without one

  bool is_string() const { return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }
  std::size_t elements() const;
  std::uint64_t bytes() const;
};

OrtStatus* NewValue(std::shared_ptr<ValueBody> body, OrtValue** out);

// A tensor over memory that is allocated here.
Result<std::shared_ptr<ValueBody>> MakeTensor(ONNXTensorElementDataType type,
                                              std::vector<std::int64_t> shape);
// A tensor that shares the memory of a result of a VM, or a copy of it: the host may write what it gets.
Result<std::shared_ptr<ValueBody>> FromTensor(const Tensor& tensor, bool copy);
// The VM's tensor over a value's memory, which the caller keeps.
Result<Value> ToTensor(const std::shared_ptr<ValueBody>& body);
// The same with another shape of as many elements.
Result<Value> ToTensor(const std::shared_ptr<ValueBody>& body, Span<const std::int64_t> shape);

// The product of a shape. Errors: kInvalidArgument for negative sizes, and for one that exceeds memory.
Result<std::size_t> CountElements(const std::int64_t* shape, std::size_t rank);

OrtTensorTypeAndShapeInfo InfoOf(const ValueBody& tensor);
OrtTypeInfo TypeOf(const ValueBody& value);

}  // namespace rewire::onnxruntime_api

struct OrtValue {
  std::shared_ptr<rewire::onnxruntime_api::ValueBody> body;
};

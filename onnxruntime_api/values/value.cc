// SPDX-License-Identifier: Apache-2.0
//
// Values as such; value_functions.cc has what a host calls.
#include "rewire/onnxruntime_api/values/value.h"

#include <cstdlib>
#include <cstring>

#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {

std::size_t ValueBody::elements() const {
  std::size_t count = 1;
  for (const std::int64_t dim : shape) count *= static_cast<std::size_t>(dim);  // checked when it was made
  return count;
}
std::uint64_t ValueBody::bytes() const { return elements() * ElementBytes(DTypeOf(type)); }

OrtStatus* NewValue(std::shared_ptr<ValueBody> body, OrtValue** out) {
  *out = new OrtValue{std::move(body)};
  return nullptr;
}

Result<std::size_t> CountElements(const std::int64_t* shape, std::size_t rank) {
  std::size_t count = 1;
  bool empty = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (shape[i] < 0)
      return Fail(StatusCode::kInvalidArgument, "tried creating tensor with negative value in shape");
    empty = empty || shape[i] == 0;
  }
  if (empty) return 0;
  for (std::size_t i = 0; i < rank; ++i) {
    // An element has at most 16 bytes.
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(shape[i]), &count) || count > PTRDIFF_MAX / 16)
      return Fail(StatusCode::kInvalidArgument, "the shape exceeds the address space");
  }
  return count;
}

Result<std::shared_ptr<ValueBody>> MakeTensor(ONNXTensorElementDataType type,
                                              std::vector<std::int64_t> shape) {
  const Result<std::size_t> count = CountElements(shape.data(), shape.size());
  if (!count) return Forward(count);
  auto body = std::make_shared<ValueBody>();
  body->type = type;
  body->shape = std::move(shape);
  if (body->is_string()) {
    body->strings.resize(*count);
    return body;
  }
  const std::uint64_t bytes = body->bytes();
  if (DTypeOf(type).bits == 0)
    return Fail(StatusCode::kUnsupported, "elements of type {} are not served", static_cast<int>(type));
  if (bytes == 0) return body;
  OrtAllocator* const allocator = DefaultOrtAllocator();
  body->data = allocator->Alloc(allocator, bytes);
  if (body->data == nullptr) return Fail(StatusCode::kOutOfMemory, "no memory for {} bytes", bytes);
  body->owner.reset(body->data, std::free);
  return body;
}

Result<std::shared_ptr<ValueBody>> FromTensor(const Tensor& tensor, bool copy) {
  const TensorView view = tensor.view();
  const ONNXTensorElementDataType type = ElementTypeOf(view.dtype());
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return Fail(StatusCode::kUnsupported, "ONNX has no element type for {}", DTypeName(view.dtype()));
  std::vector<std::int64_t> shape(view.shape().begin(), view.shape().end());
  if (copy || view.read_only() || !view.IsContiguous()) {
    Result<std::shared_ptr<ValueBody>> made = MakeTensor(type, std::move(shape));
    if (!made) return made;
    const Result<Tensor> dense = view.IsContiguous() ? tensor : Tensor::CopyOf(view);
    if (!dense) return Forward(dense);
    if ((*made)->bytes() != 0) std::memcpy((*made)->data, dense->view().data(), (*made)->bytes());
    return made;
  }
  auto body = std::make_shared<ValueBody>();
  body->type = type;
  body->shape = std::move(shape);
  body->data = view.data();
  body->owner = std::make_shared<Tensor>(tensor);
  return body;
}

Result<Value> ToTensor(const std::shared_ptr<ValueBody>& body) { return ToTensor(body, body->shape); }

Result<Value> ToTensor(const std::shared_ptr<ValueBody>& body, Span<const std::int64_t> shape) {
  static char nothing[16] = {};  // hosts give null for tensors without elements
  void* const data = body->data == nullptr ? nothing : body->data;
  const TensorView view(data, DTypeOf(body->type), shape);
  const Result<Tensor> tensor = Tensor::Wrap(view, body);
  if (!tensor) return Forward(tensor);
  return Value(*tensor);
}

OrtTensorTypeAndShapeInfo InfoOf(const ValueBody& tensor) {
  OrtTensorTypeAndShapeInfo info;
  info.type = tensor.type;
  info.dims = tensor.shape;
  info.names.resize(tensor.shape.size());
  return info;
}

OrtTypeInfo TypeOf(const ValueBody& value) {
  OrtTypeInfo type;
  type.kind = value.kind;
  if (value.kind == ONNX_TYPE_TENSOR) {
    type.tensor = InfoOf(value);
  } else if (value.kind == ONNX_TYPE_MAP) {
    type.map.key = value.parts[0]->type;
    type.map.value = std::make_shared<OrtTypeInfo>(TypeOf(*value.parts[1]));
  } else if (!value.parts.empty()) {
    OrtTypeInfo element = TypeOf(*value.parts[0]);
    // The elements of a sequence share their type alone.
    element.tensor.dims.clear();
    element.tensor.names.clear();
    element.tensor.has_shape = false;
    type.sequence.element = std::make_shared<OrtTypeInfo>(std::move(element));
  }
  return type;
}

}  // namespace rewire::onnxruntime_api

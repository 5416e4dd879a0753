// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/tflite_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "rewire/base/checked_math.h"
#include "rewire/compiler/import/tflite_text.h"

namespace rewire::compiler::tflite {

// A type of elements that is read, and what it is in ONNX.
struct Tensors::Element {
  ElementType type;
  onnx::TensorProto::DataType onnx;
  std::uint64_t bytes;
};

namespace {

constexpr std::size_t kMostRank = 32;

Status CheckQuantization(const Tensor& tensor, const std::string& what) {
  const Quantization& given = *tensor.quantization();
  const std::size_t scales = SizeOf(given.scale()), zeros = SizeOf(given.zero_point());
  if (given.details_type() != 0)
    return Refuse("{} is quantized in another way than by scales and zero points, which is not supported",
                  what);
  if (zeros != scales && zeros != 1)
    return Invalid("{} has {} scales and {} zero points", what, scales, zeros);
  const std::int32_t axis = given.quantized_dimension();
  if (scales > 1 &&
      (axis < 0 || static_cast<std::size_t>(axis) >= SizeOf(tensor.shape()) ||
       static_cast<std::size_t>(At(tensor.shape(), static_cast<std::size_t>(axis))) != scales)) {
    return Invalid("{} has {} scales for the positions along axis {} of [{}]", what, scales, axis,
                   tensor.shape() == nullptr ? "" : fmt::format("{}", fmt::join(*tensor.shape(), ", ")));
  }
  const bool is_unsigned = tensor.type() == static_cast<std::int8_t>(ElementType::kUInt8);
  const bool is_wide = tensor.type() == static_cast<std::int8_t>(ElementType::kInt16);
  const std::int64_t least = is_unsigned ? 0 : is_wide ? -32768 : -128;
  const std::int64_t most = is_unsigned ? 255 : is_wide ? 32767 : 127;
  for (std::size_t i = 0; i < scales; ++i) {
    const float scale = At(given.scale(), i);
    if (!std::isnormal(scale) || scale < 0)
      return Invalid("scale {} of {} is {}, expected a positive number", i, what, scale);
  }
  for (std::size_t i = 0; i < zeros; ++i) {
    const std::int64_t zero = At(given.zero_point(), i);
    if (zero < least || zero > most)
      return Invalid("zero point {} of {} is {}, expected {} to {}", i, what, zero, least, most);
  }
  return {};
}

}  // namespace

Tensors::Tensors(const Model& model, onnx::GraphProto* graph)
    : model_(model), main_(*At(model.subgraphs(), 0)), graph_(*graph) {
  for (std::size_t i = 0; i < SizeOf(main_.tensors()); ++i) {
    const Tensor& tensor = *At(main_.tensors(), i);
    const std::string name = NameOr(TextOf(tensor.name()), fmt::format("tensor {}", i));
    const bool is_handle = tensor.type() == static_cast<std::int8_t>(ElementType::kResource);
    names_.push_back(is_handle ? name : Unique(name));
  }
}

std::string Tensors::Unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}#{}", wanted, i);
  return name;
}

std::string Tensors::Text(std::size_t index) const {
  return fmt::format("tensor {} ('{}')", index, Printable(names_[index], kMostShownBytes));
}

const Tensors::Element* Tensors::FindElement(std::int8_t type) {
  static constexpr Element kElements[] = {
      {ElementType::kFloat32, onnx::TensorProto::FLOAT, 4},
      {ElementType::kFloat16, onnx::TensorProto::FLOAT16, 2},
      {ElementType::kInt32, onnx::TensorProto::INT32, 4},
      {ElementType::kUInt8, onnx::TensorProto::UINT8, 1},
      {ElementType::kInt64, onnx::TensorProto::INT64, 8},
      {ElementType::kBool, onnx::TensorProto::BOOL, 1},
      {ElementType::kInt16, onnx::TensorProto::INT16, 2},
      {ElementType::kInt8, onnx::TensorProto::INT8, 1},
      {ElementType::kFloat64, onnx::TensorProto::DOUBLE, 8},
  };

  const auto* found = std::find_if(std::begin(kElements), std::end(kElements), [&](const Element& row) {
    return static_cast<std::int8_t>(row.type) == type;
  });
  return found == std::end(kElements) ? nullptr : found;
}

Result<const Tensors::Element*> Tensors::ElementOf(const Tensor& tensor, std::size_t index) const {
  const Element* row = FindElement(tensor.type());
  if (row != nullptr) return row;
  return Refuse("{} has element type {} of the format, which is not supported", Text(index), tensor.type());
}

Result<std::vector<std::int64_t>> Tensors::ShapeOf(const Tensor& tensor, std::size_t index) const {
  std::vector<std::int64_t> shape;
  if (SizeOf(tensor.shape()) > kMostRank) {
    return Invalid("{} has {} dimensions, the limit is {}", Text(index), SizeOf(tensor.shape()), kMostRank);
  }
  for (std::size_t i = 0; i < SizeOf(tensor.shape()); ++i) {
    shape.push_back(At(tensor.shape(), i));
    if (shape.back() < 0)
      return Invalid("dimension {} of {} is {}, expected 0 or more", i, Text(index), shape.back());
  }
  return shape;
}

Status Tensors::AddGraphInput(std::size_t index, const std::string& what) {
  if (!graph_inputs_.insert(index).second) return Invalid("{} is {} again", what, Text(index));
  return AddInput(names_[index], index);
}

Status Tensors::AddInput(const std::string& name, std::size_t like) {
  const Tensor& tensor = *At(main_.tensors(), like);
  const Result<const Element*> element = ElementOf(tensor, like);
  if (!element) return Forward(element);
  const Result<std::vector<std::int64_t>> shape = ShapeOf(tensor, like);
  if (!shape) return Forward(shape);
  onnx::ValueInfoProto* input = graph_.add_input();
  input->set_name(name);
  onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type((*element)->onnx);
  const bool open = SizeOf(tensor.shape_signature()) == shape->size();
  type->mutable_shape();
  for (std::size_t i = 0; i < shape->size(); ++i) {
    onnx::TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
    if (open && At(tensor.shape_signature(), i) == -1) continue;
    dim->set_dim_value((*shape)[i]);
  }
  return {};
}

Result<std::optional<std::string>> Tensors::BytesOf(const Tensor& tensor, const std::string& text) const {
  if (tensor.external_buffer() != 0)
    return Refuse("{} has its bytes in another file, which is not supported", text);
  if (tensor.buffer() >= SizeOf(model_.buffers())) {
    return Invalid("{} has buffer {}, and the file has {}", text, tensor.buffer(), SizeOf(model_.buffers()));
  }
  const Buffer& buffer = *At(model_.buffers(), tensor.buffer());
  if (buffer.offset() > 1)
    return Refuse("{} has its bytes behind the tables, as files above 2 GiB do, which is not supported",
                  text);
  if (SizeOf(buffer.data()) == 0) return std::optional<std::string>();
  return std::optional(
      std::string(reinterpret_cast<const char*>(buffer.data()->data()), buffer.data()->size()));
}

Result<onnx::TensorProto> Tensors::ConstantOf(const Tensor& tensor, std::size_t index,
                                              std::string bytes) const {
  const Result<const Element*> element = ElementOf(tensor, index);
  if (!element) return Forward(element);
  const Result<std::vector<std::int64_t>> shape = ShapeOf(tensor, index);
  if (!shape) return Forward(shape);
  if (tensor.is_sparse()) return Refuse("{} is sparse, which is not supported", Text(index));
  std::optional<std::uint64_t> wanted = (*element)->bytes;
  for (const std::int64_t dim : *shape) {
    if (wanted) wanted = CheckedMul(*wanted, static_cast<std::uint64_t>(dim));
  }
  if (wanted != bytes.size()) {
    return Invalid("{} has {} bytes, and its shape [{}] takes {}", Text(index), bytes.size(),
                   fmt::join(*shape, ", "), wanted ? std::to_string(*wanted) : "more than there can be");
  }
  onnx::TensorProto constant;
  constant.set_data_type((*element)->onnx);
  for (const std::int64_t dim : *shape) constant.add_dims(dim);
  constant.set_raw_data(std::move(bytes));
  return constant;
}

Result<std::string> Tensors::Read(std::size_t index) {
  const auto current = aliases_.find(index);
  if (current != aliases_.end()) return current->second;
  const std::string& name = names_[index];
  if (graph_inputs_.contains(index) || computed_.contains(index) || constants_.contains(index)) return name;
  const Tensor& tensor = *At(main_.tensors(), index);
  Result<std::optional<std::string>> bytes = BytesOf(tensor, Text(index));
  if (!bytes) return Forward(bytes);
  // An empty list, such as the shape of a scalar, has no bytes.
  bool empty = false;
  for (std::size_t i = 0; i < SizeOf(tensor.shape()); ++i) empty = empty || At(tensor.shape(), i) == 0;
  if (!*bytes && !empty) return Invalid("{} is read before an operator has computed it", Text(index));
  Result<onnx::TensorProto> constant = ConstantOf(tensor, index, bytes->value_or(""));
  if (!constant) return Forward(constant);
  constant->set_name(name);
  *graph_.add_initializer() = *std::move(constant);
  constants_.insert(index);
  return name;
}

Status Tensors::Compute(std::size_t index, const std::string& what) {
  if (graph_inputs_.contains(index) || !computed_.insert(index).second)
    return Invalid("{} is {}, which has a value before", what, Text(index));
  return {};
}

Status Tensors::AddQuantization(std::size_t index, const std::string& what, int channel_axis,
                                onnx::NodeProto* node) {
  const Tensor& tensor = *At(main_.tensors(), index);
  const Quantization* given = tensor.quantization();
  const Element* element = FindElement(tensor.type());
  const bool narrow =
      element != nullptr && (element->type == ElementType::kInt8 || element->type == ElementType::kUInt8 ||
                             element->type == ElementType::kInt16);
  const std::size_t count = given == nullptr ? 0 : SizeOf(given->scale());
  if (!narrow || count == 0) {
    node->add_input("");
    node->add_input("");
    return {};
  }
  auto& names = quantizations_[index];
  if (names.first.empty()) {
    if (Status sound = CheckQuantization(tensor, what); !sound) return sound;
    names = AddQuantizationOf(*given, names_[index], element->onnx);
  }
  if (count > 1 && given->quantized_dimension() != channel_axis) {
    return Refuse("{} has a scale for each position along axis {}, which is not supported here", what,
                  given->quantized_dimension());
  }
  node->add_input(names.first);
  node->add_input(names.second);
  return {};
}

std::pair<std::string, std::string> Tensors::AddQuantizationOf(const Quantization& given,
                                                               const std::string& name,
                                                               onnx::TensorProto::DataType dtype) {
  const std::size_t count = SizeOf(given.scale());
  onnx::TensorProto* scale = graph_.add_initializer();
  scale->set_name(Unique(name + ".scale"));
  scale->set_data_type(onnx::TensorProto::FLOAT);
  onnx::TensorProto* zero = graph_.add_initializer();
  zero->set_name(Unique(name + ".zero"));
  zero->set_data_type(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    scale->add_float_data(At(given.scale(), i));
    zero->add_int32_data(
        static_cast<std::int32_t>(At(given.zero_point(), SizeOf(given.zero_point()) == 1 ? 0 : i)));
  }
  if (count > 1) {
    scale->add_dims(static_cast<std::int64_t>(count));
    zero->add_dims(static_cast<std::int64_t>(count));
  }
  return {scale->name(), zero->name()};
}

}  // namespace rewire::compiler::tflite

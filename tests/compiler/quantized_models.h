// SPDX-License-Identifier: Apache-2.0
// Parts of quantized models, and what a pass makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {

inline constexpr auto kU8 = onnx::TensorProto::UINT8;
inline constexpr auto kI8 = onnx::TensorProto::INT8;
inline constexpr auto kI32 = onnx::TensorProto::INT32;

// Weights of an integer type, -3, 5, 13, ... modulo 256.
inline void AddWhole(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& shape,
                     onnx::TensorProto::DataType type, std::int32_t first = -3, std::int32_t step = 8) {
  onnx::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    tensor->add_dims(dim);
    count *= dim;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t value = first + step * static_cast<std::int32_t>(i);
    tensor->add_int32_data(type == kI32  ? value
                           : type == kI8 ? static_cast<std::int8_t>(value)
                                         : static_cast<std::uint8_t>(value));
  }
}

inline Lines After(const std::string& pass, const onnx::ModelProto& model, const Shape& shape) {
  return RunPass(pass, model, shape).after;
}

// x, quantized to "xq" by xs and xz.
inline onnx::ModelProto Quantized(const std::vector<Dim>& dims, onnx::TensorProto::DataType type = kU8) {
  onnx::ModelProto model = ModelOf(dims);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "xs", {}, {0.5F});
  AddWhole(graph, "xz", {}, type, 3);
  AddNode(graph, "QuantizeLinear", {"x", "xs", "xz"}, "xq");
  return model;
}

inline bool Calls(const Lines& lines, const std::string& kernel) {
  for (const std::string& line : lines) {
    if (line.find(kernel) != std::string::npos) return true;
  }
  return false;
}

}  // namespace rewire::test

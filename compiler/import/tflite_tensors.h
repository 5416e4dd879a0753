// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a .tflite file's first subgraph as values of an ONNX graph.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/import/tflite_schema.h"

namespace rewire::compiler::tflite {

// Indices of tensors are below the subgraph's number of them: the caller has checked that. Errors are those
// of ReadTflite. The model and the graph outlive it.
class Tensors {
 public:
  // Names of tensors need not be there, nor differ. Handles of variables leave their names to the variables.
  Tensors(const Model& model, onnx::GraphProto* graph);

  // A name that no other value of the graph has, which is the wanted one if that is free.
  std::string Unique(const std::string& wanted);
  const std::string& NameOf(std::size_t index) const { return names_[index]; }
  std::string Text(std::size_t index) const;  // for messages: "tensor 3 ('image')"

  // Makes a tensor an input of the graph. `what` names that input in messages.
  Status AddGraphInput(std::size_t index, const std::string& what);
  bool IsGraphInput(std::size_t index) const { return graph_inputs_.contains(index); }
  // Adds an input of the graph that is like a tensor.
  Status AddInput(const std::string& name, std::size_t like);

  // The name under which nodes read a tensor. Constants are added when something reads them.
  Result<std::string> Read(std::size_t index);
  // Notes that an operator computes a tensor, which may have no value before.
  Status Compute(std::size_t index, const std::string& what);
  // Has nodes read another value in a tensor's place.
  void SetAlias(std::size_t index, const std::string& value) { aliases_[index] = value; }

  // The bytes of a tensor that the file has; nothing for one that operators compute. `text` names the tensor.
  Result<std::optional<std::string>> BytesOf(const Tensor& tensor, const std::string& text) const;

  // Adds scale and zero point of a tensor to the inputs of a node. Integers of 32 bits and more have a scale
  // that follows from others. A scale for each position lies along `channel_axis`, if that is not -1.
  Status AddQuantization(std::size_t index, const std::string& what, int channel_axis, onnx::NodeProto* node);

 private:
  struct Element;
  static const Element* FindElement(std::int8_t type);
  Result<const Element*> ElementOf(const Tensor& tensor, std::size_t index) const;
  Result<std::vector<std::int64_t>> ShapeOf(const Tensor& tensor, std::size_t index) const;
  Result<onnx::TensorProto> ConstantOf(const Tensor& tensor, std::size_t index, std::string bytes) const;
  std::pair<std::string, std::string> AddQuantizationOf(const Quantization& given, const std::string& name,
                                                        onnx::TensorProto::DataType dtype);

  const Model& model_;
  const SubGraph& main_;
  onnx::GraphProto& graph_;
  std::set<std::string> taken_;
  std::vector<std::string> names_;  // by the tensors' indices
  std::set<std::size_t> graph_inputs_, computed_, constants_;
  std::map<std::size_t, std::string> aliases_;
  std::map<std::size_t, std::pair<std::string, std::string>> quantizations_;
};

}  // namespace rewire::compiler::tflite

// SPDX-License-Identifier: Apache-2.0
// Small ONNX models, written in a test.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {

// An empty model, by default of operator set 13.
onnx::ModelProto EmptyModel(std::int64_t opset = 13);

// A dimension: a number, a name, or "" for one that is not known.
using Dim = std::variant<std::int64_t, const char*>;
void SetValue(onnx::ValueInfoProto* info, const std::string& name, const std::vector<Dim>& dims,
              onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT);

// Returns the node for attributes.
onnx::NodeProto* AddNode(onnx::GraphProto* graph, const std::string& type,
                         const std::vector<std::string>& inputs, const std::string& output);
void AddInt(onnx::NodeProto* node, const std::string& name, std::int64_t value);
void AddIntList(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values);
void AddString(onnx::NodeProto* node, const std::string& name, const std::string& value);
onnx::GraphProto* AddGraph(onnx::NodeProto* node, const std::string& name);
// A weight without elements, for its data; [] with no dimensions.
onnx::TensorProto* AddWeight(onnx::GraphProto* graph, const std::string& name,
                             onnx::TensorProto::DataType type, const std::vector<std::int64_t>& shape);
// A weight of i64[n], or i64[] with `scalar`.
void AddInts(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& values,
             bool scalar = false);
void AddFloats(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& shape,
               const std::vector<float>& values);

// A function of the domain "local", without nodes. It uses operator set 13 and, like the model, version 1 of
// "local".
onnx::FunctionProto* AddFunction(onnx::ModelProto* model, const std::string& name,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs);

struct Outcome {
  std::string message;  // empty: it compiled
  std::vector<compiler::Unsupported> unsupported;
  compiler::Compiled compiled;
};

// The model is called "model". The program is checked after each pass unless the options say otherwise.
Outcome CompileBytes(const std::string& bytes, const std::string& folder = "",
                     const compiler::CompileOptions& options = {}, const compiler::AfterPass& after = {});
inline Outcome CompileProto(const onnx::ModelProto& model, const compiler::CompileOptions& options = {},
                            const compiler::AfterPass& after = {}) {
  return CompileBytes(model.SerializeAsString(), "", options, after);
}

using Shape = std::vector<std::int64_t>;
struct Answer {
  std::string error;
  Shape shape;
  std::vector<float> values;
};
// Runs `main` over these inputs; it has one output, of float32.
Answer RunOn(Module module, const std::vector<std::pair<std::string, TensorView>>& inputs);
// Runs `main` over its input "x", 0, 1, 2, ... in float32 under this shape; it has one output.
Answer RunOnCounts(Module module, const Shape& shape);
// The same over these numbers.
Answer RunOn(Module module, const Shape& shape, std::vector<float> x);

}  // namespace rewire::test

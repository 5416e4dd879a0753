// SPDX-License-Identifier: Apache-2.0
//
// The variables of a .tflite file, which become inputs and outputs of the graph.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/import/tflite_operators.h"
#include "rewire/compiler/import/tflite_tensors.h"

namespace rewire::compiler::tflite {

// Takes the operators of the first subgraph in order. Errors are those of ReadTflite. What it is made of
// outlives it.
class Variables {
 public:
  Variables(const Model& model, const OperatorReader& operators, Tensors* tensors, onnx::ModelProto* out)
      : model_(model), operators_(operators), tensors_(*tensors), out_(*out) {}

  // VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE.
  Status AddHandle(const OperatorPlace& place);
  Status Read(const OperatorPlace& place);
  Status Assign(const OperatorPlace& place);
  // CALL_ONCE: reads what a subgraph stores in variables before the first run.
  Status AddInitialValues(const OperatorPlace& place);

  // Calls add(value, name) with what each variable that was assigned holds at the end, and notes as metadata
  // what each holds at first.
  Status AddOutputs(const std::function<void(const std::string&, const std::string&)>& add);

 private:
  // A resource of the model, by its container and name.
  using Resource = std::pair<std::string, std::string>;
  struct Variable {
    std::string name;     // of the graph's input
    std::string current;  // the value that it holds behind the operators so far
    Resource resource;
    bool declared = false, assigned = false;
  };

  Result<Resource> ResourceOf(const OperatorPlace& place) const;
  // The variable that input 0 is a handle of.
  Result<Variable*> VariableOf(const OperatorPlace& place);
  // The first tensor that a variable gives or takes says what it is.
  Status Declare(std::size_t like, Variable* variable);
  // The metadata names the byte that fills a variable at first.
  Status NoteInitial(const Variable& variable);

  const Model& model_;
  const OperatorReader& operators_;
  Tensors& tensors_;
  onnx::ModelProto& out_;
  std::map<std::size_t, Resource> handles_;
  std::map<Resource, Variable> variables_;
  std::vector<const Variable*> order_;  // that of their inputs
  std::map<Resource, std::string> initial_;
};

}  // namespace rewire::compiler::tflite

// SPDX-License-Identifier: Apache-2.0
//
// The operators of a .tflite file's subgraphs, after their indices and options were checked.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <functional>
#include <string>

#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/import/tflite_builtins.h"
#include "rewire/compiler/import/tflite_schema.h"

namespace rewire::compiler::tflite {

struct OperatorPlace {
  const Operator* op;
  std::int32_t code;
  std::string text;  // "operator 3 (CONV_2D)"
};

// Errors are those of ReadTflite. The model and the verifier outlive it.
class OperatorReader {
 public:
  OperatorReader(const Model& model, const flatbuffers::Verifier& verifier)
      : model_(model), verifier_(verifier) {}

  // Whether all indices are those of tensors of a subgraph, or, if some `may_lack`, -1.
  Status CheckIndices(const SubGraph& graph, const Numbers* indices, const std::string& what,
                      bool may_lack) const;

  // Calls the function with each operator of a subgraph, in order, until it fails.
  Status ForEach(const SubGraph& graph, const std::function<Status(const OperatorPlace&)>& function) const;

  // Sets *found to the options of an operator: null if it has none, then all fields have their defaults.
  Status FindOptions(const OperatorPlace& place, const Options& options, const Fields** found) const;

  // Adds the options of an operator as attributes of its node; `options` is null for one that has none.
  Status AddAttributes(const OperatorPlace& place, const Options* options, onnx::NodeProto* node) const;

 private:
  const Model& model_;
  const flatbuffers::Verifier& verifier_;
};

// Whether an operator has so many inputs, none of them missing, and outputs.
Status CheckCounts(const OperatorPlace& place, std::size_t inputs, std::size_t outputs);

}  // namespace rewire::compiler::tflite

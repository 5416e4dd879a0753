// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model after parsing, before it is checked.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/import/tensor_data.h"

namespace rewire::compiler {

// Returns where the external data of a model in a file lies: in the file's folder. Links there may lead to
// the `allowed` folders.
ExternalData ExternalDataBeside(const std::string& path, const std::vector<std::string>& allowed);

class ModelFile {
 public:
  // Errors: kNotFound, kIo; kInvalidFile if the file is not ONNX, is truncated, or has no graph or operator
  // set.
  // `files` are external data in memory (ExternalData::files).
  static Result<ModelFile> Read(const std::string& path, const std::vector<std::string>& allowed,
                                const std::map<std::string, SharedBytes>& files = {});
  // `what` names the model in messages.
  static Result<ModelFile> Parse(const SharedBytes& bytes, ExternalData external, const std::string& what);

  const onnx::GraphProto& graph() const { return model_->graph(); }
  const std::shared_ptr<const onnx::ModelProto>& proto() const { return model_; }
  const ExternalData& external() const { return external_; }
  // Locations of the external data that was read so far.
  const std::set<std::string>& external_read() const { return *external_.read; }
  // Operator set versions by domain; ONNX's own domain is "".
  const std::map<std::string, std::int64_t>& opsets() const { return opsets_; }
  // Returns a function of the model, or null.
  const onnx::FunctionProto* FindFunction(const std::string& domain, const std::string& name) const;
  // Returns the default of a function's attribute, or null if it has none.
  const onnx::AttributeProto* FindDefault(const onnx::FunctionProto& function, const std::string& name) const;

 private:
  Status AddFunctions();

  std::shared_ptr<const onnx::ModelProto> model_;
  ExternalData external_;
  std::map<std::string, std::int64_t> opsets_;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
  std::map<std::pair<const onnx::FunctionProto*, std::string>, onnx::AttributeProto> defaults_;
};

// Maps "ai.onnx" to "".
std::string DomainOf(const std::string& domain);
std::map<std::string, std::int64_t> OpsetsOf(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

}  // namespace rewire::compiler

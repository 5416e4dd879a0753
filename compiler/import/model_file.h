// SPDX-License-Identifier: Apache-2.0
// An ONNX model as read from a file or from memory: parsed, not yet judged.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "compiler/import/onnx_proto.h"

namespace rewire::compiler {

class ModelFile {
 public:
  // kNotFound, kIo; kInvalidFile: not ONNX, truncated, without a graph or an operator set.
  static Result<ModelFile> Read(const std::string& path);
  // `folder` is where external data may lie; empty: nowhere. `what` names the model in messages.
  static Result<ModelFile> Parse(const SharedBytes& bytes, const std::string& folder,
                                 const std::string& what);

  const onnx::GraphProto& graph() const { return model_->graph(); }
  const std::shared_ptr<const onnx::ModelProto>& proto() const { return model_; }
  const std::string& folder() const { return folder_; }
  // Operator set versions by domain; ONNX's own domain is "".
  const std::map<std::string, std::int64_t>& opsets() const { return opsets_; }
  // A model's own function; null when there is none.
  const onnx::FunctionProto* FindFunction(const std::string& domain, const std::string& name) const;

 private:
  std::shared_ptr<const onnx::ModelProto> model_;
  std::string folder_;
  std::map<std::string, std::int64_t> opsets_;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
};

// "ai.onnx" is "".
std::string DomainOf(const std::string& domain);
std::map<std::string, std::int64_t> OpsetsOf(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

}  // namespace rewire::compiler

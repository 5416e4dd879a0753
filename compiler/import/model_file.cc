// SPDX-License-Identifier: Apache-2.0
#include "compiler/import/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <filesystem>
#include <limits>

#include "base/mapped_file.h"

namespace rewire::compiler {

std::string DomainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::map<std::string, std::int64_t> OpsetsOf(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::map<std::string, std::int64_t> opsets;
  for (const onnx::OperatorSetIdProto& import : imports) opsets[DomainOf(import.domain())] = import.version();
  return opsets;
}

Result<ModelFile> ModelFile::Read(const std::string& path) {
  const Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return Parse(*bytes, parent.empty() ? "." : parent.string(), path);
}

Result<ModelFile> ModelFile::Parse(const SharedBytes& bytes, const std::string& folder,
                                   const std::string& what) {
  if (bytes.view.size() > std::numeric_limits<int>::max()) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{}: {} bytes; a protobuf message ends at 2 GiB, larger weights belong into "
                            "external data",
                            what, bytes.view.size()));
  }
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.view.data()),
                                                static_cast<int>(bytes.view.size()));
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Fail(StatusCode::kInvalidFile, fmt::format("{}: not an ONNX model, or a truncated one", what));
  }
  if (!model->has_graph()) return Fail(StatusCode::kInvalidFile, fmt::format("{}: it has no graph", what));
  if (model->opset_import().empty()) {
    return Fail(StatusCode::kInvalidFile, fmt::format("{}: it imports no operator set", what));
  }
  ModelFile file;
  file.folder_ = folder;
  file.opsets_ = OpsetsOf(model->opset_import());
  for (const onnx::FunctionProto& function : model->functions()) {
    file.functions_[{DomainOf(function.domain()), function.name()}] = &function;
  }
  file.model_ = std::move(model);
  return file;
}

const onnx::FunctionProto* ModelFile::FindFunction(const std::string& domain, const std::string& name) const {
  const auto found = functions_.find({domain, name});
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace rewire::compiler

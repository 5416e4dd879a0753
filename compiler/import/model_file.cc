// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>

#include <filesystem>
#include <limits>

#include "rewire/base/mapped_file.h"
#include "rewire/base/utf8.h"
#include "rewire/compiler/import/read_tflite.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kMostFunctionNameBytes = 256;  // of a stranger's name, in a message
constexpr int kAttributeProtoField = 11;             // FunctionProto.attribute_proto, of ONNX 1.13

// `real` is the model's path after links are followed.
ExternalData BesideModel(const std::filesystem::path& path, const std::filesystem::path& real,
                         const std::vector<std::string>& allowed) {
  const std::filesystem::path parent = path.parent_path();
  return {parent.empty() ? "." : parent.string(), allowed, real.parent_path().string()};
}

}  // namespace

std::string DomainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::map<std::string, std::int64_t> OpsetsOf(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::map<std::string, std::int64_t> opsets;
  for (const onnx::OperatorSetIdProto& import : imports) opsets[DomainOf(import.domain())] = import.version();
  return opsets;
}

ExternalData ExternalDataBeside(const std::string& path, const std::vector<std::string>& allowed) {
  std::error_code failed;
  return BesideModel(path, std::filesystem::canonical(path, failed), allowed);
}

Result<ModelFile> ModelFile::Read(const std::string& path, const std::vector<std::string>& allowed,
                                  const std::map<std::string, SharedBytes>& files) {
  // The model is the file that the path leads to now. If it leads nowhere, the error names the path as it was
  // given.
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  const Result<SharedBytes> bytes = failed ? MapFile(path) : MapFileWithoutLinks(real.string(), path);
  if (!bytes) return Forward(bytes);
  ExternalData external = BesideModel(path, real, allowed);
  external.files = files;
  return Parse(*bytes, std::move(external), path);
}

namespace {

Status ParseOnnx(const SharedBytes& bytes, onnx::ModelProto* model) {
  if (bytes.view.size() > std::numeric_limits<int>::max()) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} bytes; a protobuf message ends at 2 GiB, larger weights belong into "
                            "external data",
                            bytes.view.size()));
  }
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.view.data()),
                                                static_cast<int>(bytes.view.size()));
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Fail(
        StatusCode::kInvalidFile,
        "not an ONNX model, or a truncated one; copy it again, or export one as docs/from-pytorch.md says");
  }
  if (!model->has_graph()) return Fail(StatusCode::kInvalidFile, "it has no graph");
  if (model->opset_import().empty()) return Fail(StatusCode::kInvalidFile, "it imports no operator set");
  return {};
}

}  // namespace

// A .tflite file is known by its content, and becomes a model of operators of its own domain.
Result<ModelFile> ModelFile::Parse(const SharedBytes& bytes, ExternalData external, const std::string& what) {
  auto model = std::make_shared<onnx::ModelProto>();
  const Status read = IsTflite(bytes.view) ? ReadTflite(bytes, model.get()) : ParseOnnx(bytes, model.get());
  if (!read) return Forward(read, what);
  ModelFile file;
  file.external_ = std::move(external);
  file.external_.read = std::make_shared<std::set<std::string>>();
  file.opsets_ = OpsetsOf(model->opset_import());
  file.model_ = std::move(model);
  if (Status added = file.AddFunctions(); !added) return Forward(added, what);
  return file;
}

Status ModelFile::AddFunctions() {
  for (const onnx::FunctionProto& function : model_->functions()) {
    if (!functions_.emplace(std::pair(DomainOf(function.domain()), function.name()), &function).second) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("there are two functions '{}' of domain '{}'; overloads are not supported",
                              Printable(function.name(), kMostFunctionNameBytes),
                              Printable(function.domain(), kMostFunctionNameBytes)));
    }
    // The classes that this is built with may be older than the field.
    const google::protobuf::UnknownFieldSet& unknown = function.GetReflection()->GetUnknownFields(function);
    for (int i = 0; i < unknown.field_count(); ++i) {
      const google::protobuf::UnknownField& field = unknown.field(i);
      if (field.number() != kAttributeProtoField ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        continue;
      }
      onnx::AttributeProto attribute;
      if (!attribute.ParseFromString(field.length_delimited())) {
        return Fail(StatusCode::kInvalidFile,
                    fmt::format("function '{}': attribute_proto cannot be read",
                                Printable(function.name(), kMostFunctionNameBytes)));
      }
      const std::string name = attribute.name();
      defaults_.emplace(std::pair(&function, name), std::move(attribute));
    }
  }
  return {};
}

const onnx::AttributeProto* ModelFile::FindDefault(const onnx::FunctionProto& function,
                                                   const std::string& name) const {
  const auto found = defaults_.find({&function, name});
  return found == defaults_.end() ? nullptr : &found->second;
}

const onnx::FunctionProto* ModelFile::FindFunction(const std::string& domain, const std::string& name) const {
  const auto found = functions_.find({domain, name});
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace rewire::compiler

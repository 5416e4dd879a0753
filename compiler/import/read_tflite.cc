// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/read_tflite.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "rewire/compiler/import/tflite_builtins.h"
#include "rewire/compiler/import/tflite_operators.h"
#include "rewire/compiler/import/tflite_schema.h"
#include "rewire/compiler/import/tflite_tensors.h"
#include "rewire/compiler/import/tflite_text.h"
#include "rewire/compiler/import/tflite_variables.h"

namespace rewire::compiler {
namespace tflite {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::int64_t kOnnxOpset = 21;
constexpr flatbuffers::uoffset_t kMostTableDepth = 16, kMostTables = 4'000'000;

// Adds the first subgraph of a file that has one to a model.
class Reader {
 public:
  Reader(const Model& model, const flatbuffers::Verifier& verifier, onnx::ModelProto* out)
      : model_(model),
        main_(*At(model.subgraphs(), 0)),
        graph_(*out->mutable_graph()),
        operators_(model, verifier),
        tensors_(model, &graph_),
        variables_(model, operators_, &tensors_, out) {}

  Status Read() {
    if (Status added = AddInputs(); !added) return added;
    const auto add = [this](const OperatorPlace& place) { return AddOperator(place); };
    if (Status added = operators_.ForEach(main_, add); !added) return added;
    return AddOutputs();
  }

 private:
  Status AddInputs() {
    if (Status fits = operators_.CheckIndices(main_, main_.inputs(), "input", false); !fits) return fits;
    for (std::size_t i = 0; i < SizeOf(main_.inputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(main_.inputs(), i));
      if (Status added = tensors_.AddGraphInput(index, fmt::format("input {}", i)); !added) return added;
    }
    return {};
  }

  Status AddOperator(const OperatorPlace& place) {
    switch (place.code) {
      case kCallOnce:
        return variables_.AddInitialValues(place);
      case kVarHandle:
        return variables_.AddHandle(place);
      case kReadVariable:
        return variables_.Read(place);
      case kAssignVariable:
        return variables_.Assign(place);
      default:
        return AddNode(place);
    }
  }

  Status AddNode(const OperatorPlace& place) {
    const Operator& op = *place.op;
    const Options* options = OptionsOf(place.code);
    onnx::NodeProto* node = graph_.add_node();
    node->set_domain(kTfliteDomain);
    node->set_op_type(NameOfBuiltin(place.code));
    if (place.code == kCustom) {
      const std::string name = TextOf(At(model_.operator_codes(), op.opcode_index())->custom_code());
      node->set_op_type("CUSTOM " + Printable(name, kMostShownBytes));
    }
    for (std::size_t i = 0; i < SizeOf(op.inputs()); ++i) {
      const std::int32_t index = At(op.inputs(), i);
      if (index < 0) {
        node->add_input("");
        continue;
      }
      const Result<std::string> name = tensors_.Read(static_cast<std::size_t>(index));
      if (!name) return Forward(name, fmt::format("{}: input {}", place.text, i));
      node->add_input(*name);
    }
    for (std::size_t i = 0; i < SizeOf(op.inputs()); ++i) {
      const std::int32_t index = At(op.inputs(), i);
      const int axis = i == 1 && options != nullptr ? options->channel_axis : -1;
      if (index < 0) {
        node->add_input("");
        node->add_input("");
      } else if (Status added = tensors_.AddQuantization(
                     static_cast<std::size_t>(index), fmt::format("{}: input {}", place.text, i), axis, node);
                 !added) {
        return added;
      }
    }
    for (std::size_t i = 0; i < SizeOf(op.outputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(op.outputs(), i));
      const std::string what = fmt::format("{}: output {}", place.text, i);
      if (Status computed = tensors_.Compute(index, what); !computed) return computed;
      node->add_output(tensors_.NameOf(index));
      if (Status added = tensors_.AddQuantization(index, what, -1, node); !added) return added;
    }
    return operators_.AddAttributes(place, options, node);
  }

  Status AddOutputs() {
    if (Status fits = operators_.CheckIndices(main_, main_.outputs(), "output", false); !fits) return fits;
    for (std::size_t i = 0; i < SizeOf(main_.outputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(main_.outputs(), i));
      const Result<std::string> name = tensors_.Read(index);
      if (!name) return Forward(name, fmt::format("output {}", i));
      const std::string& own = tensors_.NameOf(index);
      if (*name == own && !tensors_.IsGraphInput(index))
        graph_.add_output()->set_name(own);
      else
        AddCopy(*name, own);
    }
    return variables_.AddOutputs(
        [this](const std::string& value, const std::string& name) { AddCopy(value, name); });
  }

  // Adds an output that is a copy of a value.
  void AddCopy(const std::string& value, const std::string& wanted) {
    onnx::NodeProto* node = graph_.add_node();
    node->set_op_type("Identity");
    node->add_input(value);
    node->add_output(tensors_.Unique(wanted));
    graph_.add_output()->set_name(node->output(0));
  }

  const Model& model_;
  const SubGraph& main_;
  onnx::GraphProto& graph_;
  OperatorReader operators_;
  Tensors tensors_;
  Variables variables_;
};

void AddOpset(const char* domain, std::int64_t version, onnx::ModelProto* model) {
  onnx::OperatorSetIdProto* opset = model->add_opset_import();
  opset->set_domain(domain);
  opset->set_version(version);
}

Status ReadModel(const Model& file, const flatbuffers::Verifier& verifier, onnx::ModelProto* model) {
  if (file.version() != kVersion)
    return Refuse("version {} of the format; expected {}", file.version(), kVersion);
  if (SizeOf(file.subgraphs()) == 0) return Invalid("it has no subgraph");
  model->set_ir_version(onnx::IR_VERSION);
  model->set_producer_name("tflite");
  AddOpset("", kOnnxOpset, model);
  AddOpset(kTfliteDomain, 1, model);
  return Reader(file, verifier, model).Read();
}

}  // namespace
}  // namespace tflite

bool IsTflite(Span<const std::byte> file) {
  constexpr std::size_t kRoot = 4, kIdentified = 8;
  if (file.size() < kIdentified || std::memcmp(file.data() + kRoot, tflite::kIdentifier, kRoot) != 0)
    return false;
  // A protobuf message may have these bytes in a text. It then begins with fields, and no root can be there.
  std::uint32_t root = 0;
  std::memcpy(&root, file.data(), sizeof(root));
  return root % kRoot == 0 && root < 0x0100'0000;
}

Status ReadTflite(const SharedBytes& file, onnx::ModelProto* model) {
  if (file.view.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{} bytes; the tables of a .tflite file end at 2 GiB", file.view.size()));
  }
  SharedBytes aligned = file;
  constexpr std::size_t kAlignment = 16;
  if (!IsAligned(file.view, kAlignment)) {
    Result<SharedBytes> copy = AlignedCopy(file.view, kAlignment);
    if (!copy) return Forward(copy);
    aligned = *std::move(copy);
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(aligned.view.data());
  flatbuffers::Verifier verifier(bytes, aligned.view.size(), tflite::kMostTableDepth, tflite::kMostTables);
  if (!verifier.VerifyBuffer<tflite::Model>(tflite::kIdentifier)) {
    return Fail(StatusCode::kInvalidFile,
                "not a whole .tflite file: a table, vector or text lies outside it; copy the file again");
  }
  return tflite::ReadModel(*flatbuffers::GetRoot<tflite::Model>(bytes), verifier, model);
}

}  // namespace rewire::compiler

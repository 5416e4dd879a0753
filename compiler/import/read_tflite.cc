// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/read_tflite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rewire/base/checked_math.h"
#include "rewire/base/utf8.h"
#include "rewire/compiler/import/tflite_builtins.h"
#include "rewire/compiler/import/tflite_schema.h"

namespace rewire::compiler {
namespace {

using tflite::ElementType;

constexpr std::uint32_t kVersion = 3;
constexpr std::int64_t kOnnxOpset = 21;
constexpr std::size_t kMostShownBytes = 256;  // in messages
constexpr std::size_t kMostTensorName = 1000;
constexpr std::size_t kMostTfliteRank = 32;
constexpr flatbuffers::uoffset_t kMostTableDepth = 16, kMostTables = 4'000'000;

struct ElementRow {
  ElementType type;
  onnx::TensorProto::DataType onnx;
  std::uint64_t bytes;
};

constexpr ElementRow kElements[] = {
    {ElementType::kFloat32, onnx::TensorProto::FLOAT, 4},
    {ElementType::kFloat16, onnx::TensorProto::FLOAT16, 2},
    {ElementType::kInt32, onnx::TensorProto::INT32, 4},
    {ElementType::kUInt8, onnx::TensorProto::UINT8, 1},
    {ElementType::kInt64, onnx::TensorProto::INT64, 8},
    {ElementType::kBool, onnx::TensorProto::BOOL, 1},
    {ElementType::kInt16, onnx::TensorProto::INT16, 2},
    {ElementType::kInt8, onnx::TensorProto::INT8, 1},
    {ElementType::kFloat64, onnx::TensorProto::DOUBLE, 8},
};

const ElementRow* FindElement(std::int8_t type) {
  const auto* found = std::find_if(std::begin(kElements), std::end(kElements), [&](const ElementRow& row) {
    return static_cast<std::int8_t>(row.type) == type;
  });
  return found == std::end(kElements) ? nullptr : found;
}

// Vectors of the file may be missing, which is the same as being empty.
template <typename Vector>
std::size_t SizeOf(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}
template <typename Vector>
auto At(const Vector* vector, std::size_t i) {
  return vector->Get(static_cast<flatbuffers::uoffset_t>(i));
}

std::string TextOf(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

template <typename... Args>
Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(StatusCode::kInvalidFile, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status Refuse(fmt::format_string<Args...> format, Args&&... args) {
  return Fail(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}

// An operator of a subgraph, after its indices were checked.
struct OperatorPlace {
  const tflite::Operator* op;
  std::int32_t code;
  std::string text;  // "operator 3 (CONV_2D)"
};

class Reader {
 public:
  Reader(const tflite::Model& model, const flatbuffers::Verifier& verifier, onnx::ModelProto* out)
      : model_(model), verifier_(verifier), out_(*out), graph_(*out->mutable_graph()) {}

  Status Read() {
    if (model_.version() != kVersion)
      return Refuse("version {} of the format; expected {}", model_.version(), kVersion);
    if (SizeOf(model_.subgraphs()) == 0) return Invalid("it has no subgraph");
    out_.set_ir_version(onnx::IR_VERSION);
    out_.set_producer_name("tflite");
    AddOpset("", kOnnxOpset);
    AddOpset(kTfliteDomain, 1);
    main_ = At(model_.subgraphs(), 0);
    NameTensors();
    if (Status added = AddInputs(); !added) return added;
    if (Status added =
            ForEachOperator(*main_, [&](const OperatorPlace& place) { return AddOperator(place); });
        !added)
      return added;
    return AddOutputs();
  }

 private:
  // A resource of the model, by its container and name.
  using Resource = std::pair<std::string, std::string>;
  struct Variable {
    std::string name;     // of the graph's input
    std::string current;  // the value that it holds behind the operators so far
    Resource resource;
    bool declared = false, assigned = false;
  };

  void AddOpset(const char* domain, std::int64_t version) {
    onnx::OperatorSetIdProto* opset = out_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }

  std::string Unique(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}#{}", wanted, i);
    return name;
  }

  // Names of tensors need not be there, nor differ. Handles of variables leave their names to the variables.
  void NameTensors() {
    for (std::size_t i = 0; i < SizeOf(main_->tensors()); ++i) {
      const tflite::Tensor& tensor = *At(main_->tensors(), i);
      const std::string given = TextOf(tensor.name());
      const bool usable = !given.empty() && given.size() <= kMostTensorName && IsPrintable(given);
      const std::string name = usable ? given : fmt::format("tensor {}", i);
      const bool is_handle = tensor.type() == static_cast<std::int8_t>(ElementType::kResource);
      tensor_names_.push_back(is_handle ? name : Unique(name));
    }
  }

  std::string TensorText(std::size_t index) const {
    return fmt::format("tensor {} ('{}')", index, Printable(tensor_names_[index], kMostShownBytes));
  }

  Status CheckIndices(const tflite::SubGraph& graph, const tflite::Numbers* indices, const std::string& what,
                      bool may_lack) const {
    for (std::size_t i = 0; i < SizeOf(indices); ++i) {
      const std::int32_t index = At(indices, i);
      if (index == -1 && may_lack) continue;
      if (index < 0 || static_cast<std::size_t>(index) >= SizeOf(graph.tensors())) {
        return Invalid("{} {} is tensor {}, and the subgraph has {}", what, i, index,
                       SizeOf(graph.tensors()));
      }
    }
    return {};
  }

  template <typename Function>
  Status ForEachOperator(const tflite::SubGraph& graph, const Function& function) {
    for (std::size_t i = 0; i < SizeOf(graph.operators()); ++i) {
      const tflite::Operator* op = At(graph.operators(), i);
      if (op->opcode_index() >= SizeOf(model_.operator_codes())) {
        return Invalid("operator {} has operator code {}, and the file has {}", i, op->opcode_index(),
                       SizeOf(model_.operator_codes()));
      }
      const std::int32_t code = At(model_.operator_codes(), op->opcode_index())->builtin_code();
      const OperatorPlace place{op, code, fmt::format("operator {} ({})", i, tflite::NameOfBuiltin(code))};
      if (Status fits = CheckIndices(graph, op->inputs(), place.text + ": input", true); !fits) return fits;
      if (Status fits = CheckIndices(graph, op->outputs(), place.text + ": output", false); !fits)
        return fits;
      if (Status done = function(place); !done) return done;
    }
    return {};
  }

  Status AddInputs() {
    if (Status fits = CheckIndices(*main_, main_->inputs(), "input", false); !fits) return fits;
    for (std::size_t i = 0; i < SizeOf(main_->inputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(main_->inputs(), i));
      if (!graph_inputs_.insert(index).second) return Invalid("input {} is {} again", i, TensorText(index));
      if (Status added = AddInput(tensor_names_[index], index); !added) return added;
    }
    return {};
  }

  // Adds an input of the graph that is like a tensor.
  Status AddInput(const std::string& name, std::size_t like) {
    const tflite::Tensor& tensor = *At(main_->tensors(), like);
    const Result<const ElementRow*> element = ElementOf(tensor, like);
    if (!element) return Forward(element);
    const Result<std::vector<std::int64_t>> shape = ShapeOf(tensor, like);
    if (!shape) return Forward(shape);
    onnx::ValueInfoProto* input = graph_.add_input();
    input->set_name(name);
    onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type((*element)->onnx);
    const bool open = SizeOf(tensor.shape_signature()) == shape->size();
    type->mutable_shape();
    for (std::size_t i = 0; i < shape->size(); ++i) {
      onnx::TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
      if (open && At(tensor.shape_signature(), i) == -1) continue;
      dim->set_dim_value((*shape)[i]);
    }
    return {};
  }

  Result<const ElementRow*> ElementOf(const tflite::Tensor& tensor, std::size_t index) const {
    const ElementRow* row = FindElement(tensor.type());
    if (row != nullptr) return row;
    return Refuse("{} has element type {} of the format, which is not supported", TensorText(index),
                  tensor.type());
  }

  Result<std::vector<std::int64_t>> ShapeOf(const tflite::Tensor& tensor, std::size_t index) const {
    std::vector<std::int64_t> shape;
    if (SizeOf(tensor.shape()) > kMostTfliteRank) {
      return Invalid("{} has {} dimensions, the limit is {}", TensorText(index), SizeOf(tensor.shape()),
                     kMostTfliteRank);
    }
    for (std::size_t i = 0; i < SizeOf(tensor.shape()); ++i) {
      shape.push_back(At(tensor.shape(), i));
      if (shape.back() < 0)
        return Invalid("dimension {} of {} is {}, expected 0 or more", i, TensorText(index), shape.back());
    }
    return shape;
  }

  // The bytes of a tensor that the file has; nothing for one that operators compute.
  Result<std::optional<std::string>> BytesOf(const tflite::Tensor& tensor, const std::string& text) const {
    if (tensor.external_buffer() != 0)
      return Refuse("{} has its bytes in another file, which is not supported", text);
    if (tensor.buffer() >= SizeOf(model_.buffers())) {
      return Invalid("{} has buffer {}, and the file has {}", text, tensor.buffer(),
                     SizeOf(model_.buffers()));
    }
    const tflite::Buffer& buffer = *At(model_.buffers(), tensor.buffer());
    if (buffer.offset() > 1)
      return Refuse("{} has its bytes behind the tables, as files above 2 GiB do, which is not supported",
                    text);
    if (SizeOf(buffer.data()) == 0) return std::optional<std::string>();
    return std::optional(
        std::string(reinterpret_cast<const char*>(buffer.data()->data()), buffer.data()->size()));
  }

  Result<onnx::TensorProto> ConstantOf(const tflite::Tensor& tensor, std::size_t index,
                                       std::string bytes) const {
    const Result<const ElementRow*> element = ElementOf(tensor, index);
    if (!element) return Forward(element);
    const Result<std::vector<std::int64_t>> shape = ShapeOf(tensor, index);
    if (!shape) return Forward(shape);
    if (tensor.is_sparse()) return Refuse("{} is sparse, which is not supported", TensorText(index));
    std::optional<std::uint64_t> wanted = (*element)->bytes;
    for (const std::int64_t dim : *shape) {
      if (wanted) wanted = CheckedMul(*wanted, static_cast<std::uint64_t>(dim));
    }
    if (wanted != bytes.size()) {
      return Invalid("{} has {} bytes, and its shape [{}] takes {}", TensorText(index), bytes.size(),
                     fmt::join(*shape, ", "), wanted ? std::to_string(*wanted) : "more than there can be");
    }
    onnx::TensorProto constant;
    constant.set_data_type((*element)->onnx);
    for (const std::int64_t dim : *shape) constant.add_dims(dim);
    constant.set_raw_data(std::move(bytes));
    return constant;
  }

  // The name under which nodes read a tensor. Constants are added when something reads them.
  Result<std::string> NameOf(std::size_t index) {
    const auto current = aliases_.find(index);
    if (current != aliases_.end()) return current->second;
    const std::string& name = tensor_names_[index];
    if (graph_inputs_.contains(index) || computed_.contains(index) || constants_.contains(index)) return name;
    const tflite::Tensor& tensor = *At(main_->tensors(), index);
    Result<std::optional<std::string>> bytes = BytesOf(tensor, TensorText(index));
    if (!bytes) return Forward(bytes);
    // An empty list, such as the shape of a scalar, has no bytes.
    bool empty = false;
    for (std::size_t i = 0; i < SizeOf(tensor.shape()); ++i) empty = empty || At(tensor.shape(), i) == 0;
    if (!*bytes && !empty) return Invalid("{} is read before an operator has computed it", TensorText(index));
    Result<onnx::TensorProto> constant = ConstantOf(tensor, index, bytes->value_or(""));
    if (!constant) return Forward(constant);
    constant->set_name(name);
    *graph_.add_initializer() = *std::move(constant);
    constants_.insert(index);
    return name;
  }

  // Adds scale and zero point of a tensor to the inputs of a node. Integers of 32 bits and more have a scale
  // that follows from others.
  Status AddQuantization(std::size_t index, const std::string& what, int channel_axis,
                         onnx::NodeProto* node) {
    const tflite::Tensor& tensor = *At(main_->tensors(), index);
    const tflite::Quantization* given = tensor.quantization();
    const ElementRow* element = FindElement(tensor.type());
    const bool narrow =
        element != nullptr && (element->type == ElementType::kInt8 || element->type == ElementType::kUInt8 ||
                               element->type == ElementType::kInt16);
    const std::size_t count = given == nullptr ? 0 : SizeOf(given->scale());
    if (!narrow || count == 0) {
      node->add_input("");
      node->add_input("");
      return {};
    }
    auto& names = quantizations_[index];
    if (names.first.empty()) {
      if (Status sound = CheckQuantization(tensor, what); !sound) return sound;
      names = AddQuantizationOf(*given, tensor_names_[index], element->onnx);
    }
    if (count > 1 && given->quantized_dimension() != channel_axis) {
      return Refuse("{} has a scale for each position along axis {}, which is not supported here", what,
                    given->quantized_dimension());
    }
    node->add_input(names.first);
    node->add_input(names.second);
    return {};
  }

  static Status CheckQuantization(const tflite::Tensor& tensor, const std::string& what) {
    const tflite::Quantization& given = *tensor.quantization();
    const std::size_t scales = SizeOf(given.scale()), zeros = SizeOf(given.zero_point());
    if (given.details_type() != 0)
      return Refuse("{} is quantized in another way than by scales and zero points, which is not supported",
                    what);
    if (zeros != scales && zeros != 1)
      return Invalid("{} has {} scales and {} zero points", what, scales, zeros);
    const std::int32_t axis = given.quantized_dimension();
    if (scales > 1 &&
        (axis < 0 || static_cast<std::size_t>(axis) >= SizeOf(tensor.shape()) ||
         static_cast<std::size_t>(At(tensor.shape(), static_cast<std::size_t>(axis))) != scales)) {
      return Invalid("{} has {} scales for the positions along axis {} of [{}]", what, scales, axis,
                     tensor.shape() == nullptr ? "" : fmt::format("{}", fmt::join(*tensor.shape(), ", ")));
    }
    const bool is_unsigned = tensor.type() == static_cast<std::int8_t>(ElementType::kUInt8);
    const bool is_wide = tensor.type() == static_cast<std::int8_t>(ElementType::kInt16);
    const std::int64_t least = is_unsigned ? 0 : is_wide ? -32768 : -128;
    const std::int64_t most = is_unsigned ? 255 : is_wide ? 32767 : 127;
    for (std::size_t i = 0; i < scales; ++i) {
      const float scale = At(given.scale(), i);
      if (!std::isnormal(scale) || scale < 0)
        return Invalid("scale {} of {} is {}, expected a positive number", i, what, scale);
    }
    for (std::size_t i = 0; i < zeros; ++i) {
      const std::int64_t zero = At(given.zero_point(), i);
      if (zero < least || zero > most)
        return Invalid("zero point {} of {} is {}, expected {} to {}", i, what, zero, least, most);
    }
    return {};
  }

  std::pair<std::string, std::string> AddQuantizationOf(const tflite::Quantization& given,
                                                        const std::string& name,
                                                        onnx::TensorProto::DataType dtype) {
    const std::size_t count = SizeOf(given.scale());
    onnx::TensorProto* scale = graph_.add_initializer();
    scale->set_name(Unique(name + ".scale"));
    scale->set_data_type(onnx::TensorProto::FLOAT);
    onnx::TensorProto* zero = graph_.add_initializer();
    zero->set_name(Unique(name + ".zero"));
    zero->set_data_type(dtype);
    for (std::size_t i = 0; i < count; ++i) {
      scale->add_float_data(At(given.scale(), i));
      zero->add_int32_data(
          static_cast<std::int32_t>(At(given.zero_point(), SizeOf(given.zero_point()) == 1 ? 0 : i)));
    }
    if (count > 1) {
      scale->add_dims(static_cast<std::int64_t>(count));
      zero->add_dims(static_cast<std::int64_t>(count));
    }
    return {scale->name(), zero->name()};
  }

  Status AddOperator(const OperatorPlace& place) {
    switch (place.code) {
      case tflite::kCallOnce:
        return AddInitialValues(place);
      case tflite::kVarHandle:
        return AddHandle(place);
      case tflite::kReadVariable:
        return ReadVariable(place);
      case tflite::kAssignVariable:
        return AssignVariable(place);
      default:
        return AddNode(place);
    }
  }

  Status AddNode(const OperatorPlace& place) {
    const tflite::Operator& op = *place.op;
    const tflite::Options* options = tflite::OptionsOf(place.code);
    onnx::NodeProto* node = graph_.add_node();
    node->set_domain(kTfliteDomain);
    node->set_op_type(tflite::NameOfBuiltin(place.code));
    if (place.code == tflite::kCustom) {
      const std::string name = TextOf(At(model_.operator_codes(), op.opcode_index())->custom_code());
      node->set_op_type("CUSTOM " + Printable(name, kMostShownBytes));
    }
    for (std::size_t i = 0; i < SizeOf(op.inputs()); ++i) {
      const std::int32_t index = At(op.inputs(), i);
      if (index < 0) {
        node->add_input("");
        continue;
      }
      const Result<std::string> name = NameOf(static_cast<std::size_t>(index));
      if (!name) return Forward(name, fmt::format("{}: input {}", place.text, i));
      node->add_input(*name);
    }
    for (std::size_t i = 0; i < SizeOf(op.inputs()); ++i) {
      const std::int32_t index = At(op.inputs(), i);
      const int axis = i == 1 && options != nullptr ? options->channel_axis : -1;
      if (index < 0) {
        node->add_input("");
        node->add_input("");
      } else if (Status added = AddQuantization(static_cast<std::size_t>(index),
                                                fmt::format("{}: input {}", place.text, i), axis, node);
                 !added) {
        return added;
      }
    }
    for (std::size_t i = 0; i < SizeOf(op.outputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(op.outputs(), i));
      const std::string what = fmt::format("{}: output {}", place.text, i);
      if (graph_inputs_.contains(index) || !computed_.insert(index).second)
        return Invalid("{} is {}, which has a value before", what, TensorText(index));
      node->add_output(tensor_names_[index]);
      if (Status added = AddQuantization(index, what, -1, node); !added) return added;
    }
    return AddAttributes(place, options, node);
  }

  Status AddAttributes(const OperatorPlace& place, const tflite::Options* options,
                       onnx::NodeProto* node) const {
    if (options == nullptr) return {};
    const tflite::Fields* given = nullptr;
    if (Status found = FindOptions(place, *options, &given); !found) return found;
    for (const tflite::OptionField& field : options->fields) {
      onnx::AttributeProto attribute;
      attribute.set_name(field.name);
      attribute.set_type(field.kind == tflite::OptionField::kFloat  ? onnx::AttributeProto::FLOAT
                         : field.kind == tflite::OptionField::kInts ? onnx::AttributeProto::INTS
                                                                    : onnx::AttributeProto::INT);
      const auto fallback = static_cast<std::int32_t>(field.fallback);
      switch (field.kind) {
        case tflite::OptionField::kByte:
          attribute.set_i(given == nullptr
                              ? fallback
                              : given->Scalar<std::int8_t>(field.field, static_cast<std::int8_t>(fallback)));
          break;
        case tflite::OptionField::kInt:
          attribute.set_i(given == nullptr ? fallback : given->Scalar<std::int32_t>(field.field, fallback));
          break;
        case tflite::OptionField::kFloat:
          attribute.set_f(given == nullptr ? field.fallback
                                           : given->Scalar<float>(field.field, field.fallback));
          break;
        case tflite::OptionField::kInts: {
          const auto* list = given == nullptr ? nullptr : given->Pointer<tflite::Numbers>(field.field);
          if (list == nullptr) continue;
          for (std::size_t i = 0; i < list->size(); ++i) attribute.add_ints(At(list, i));
          break;
        }
        case tflite::OptionField::kText:
          continue;  // names of variables, which are no attributes of nodes
      }
      *node->add_attribute() = std::move(attribute);
    }
    return {};
  }

  // Null if the operator has none: then all fields have their defaults.
  Status FindOptions(const OperatorPlace& place, const tflite::Options& options,
                     const tflite::Fields** found) const {
    const tflite::Fields* given = place.op->options();
    *found = given;
    if (given == nullptr) return {};
    if (place.op->options_type() != options.type) {
      return Invalid("{} has options of kind {}, expected kind {}", place.text, place.op->options_type(),
                     options.type);
    }
    for (const tflite::OptionField& field : options.fields) {
      bool sound = true;
      switch (field.kind) {
        case tflite::OptionField::kByte:
          sound = given->VerifyScalar<std::int8_t>(verifier_, field.field);
          break;
        case tflite::OptionField::kInt:
          sound = given->VerifyScalar<std::int32_t>(verifier_, field.field);
          break;
        case tflite::OptionField::kFloat:
          sound = given->VerifyScalar<float>(verifier_, field.field);
          break;
        case tflite::OptionField::kInts:
          sound = given->VerifyNumbers<std::int32_t>(verifier_, field.field);
          break;
        case tflite::OptionField::kText:
          sound = given->VerifyText(verifier_, field.field);
          break;
      }
      if (!sound) return Invalid("{}: its option {} lies outside the file", place.text, field.name);
    }
    return {};
  }

  static Status CheckCounts(const OperatorPlace& place, std::size_t inputs, std::size_t outputs) {
    const std::size_t has_inputs = SizeOf(place.op->inputs()), has_outputs = SizeOf(place.op->outputs());
    bool all_there = true;
    for (std::size_t i = 0; i < has_inputs; ++i) all_there = all_there && At(place.op->inputs(), i) >= 0;
    if (has_inputs == inputs && has_outputs == outputs && all_there) return {};
    return Invalid("{} has {} inputs and {} outputs, expected {} and {}", place.text, has_inputs, has_outputs,
                   inputs, outputs);
  }

  Result<Resource> ResourceOf(const OperatorPlace& place) const {
    if (Status fits = CheckCounts(place, 0, 1); !fits) return Forward(fits);
    const tflite::Fields* given = nullptr;
    if (Status found = FindOptions(place, *tflite::OptionsOf(place.code), &given); !found)
      return Forward(found);
    if (given == nullptr) return Resource();
    return Resource(TextOf(given->Pointer<flatbuffers::String>(tflite::kContainer)),
                    TextOf(given->Pointer<flatbuffers::String>(tflite::kSharedName)));
  }

  Status AddHandle(const OperatorPlace& place) {
    const Result<Resource> resource = ResourceOf(place);
    if (!resource) return Forward(resource);
    handles_[static_cast<std::size_t>(At(place.op->outputs(), 0))] = *resource;
    Variable& variable = variables_[*resource];
    if (!variable.name.empty()) return {};
    const std::string& given = resource->second;
    const bool usable = !given.empty() && given.size() <= kMostTensorName && IsPrintable(given);
    variable.name = Unique(usable ? given : fmt::format("variable {}", variables_.size() - 1));
    variable.current = variable.name;
    variable.resource = *resource;
    return {};
  }

  // The variable that input 0 is a handle of.
  Result<Variable*> VariableOf(const OperatorPlace& place) {
    const auto found = handles_.find(static_cast<std::size_t>(At(place.op->inputs(), 0)));
    if (found == handles_.end()) {
      return Invalid("{}: its input 0 is {}, which no VAR_HANDLE before it gives", place.text,
                     TensorText(static_cast<std::size_t>(At(place.op->inputs(), 0))));
    }
    return &variables_[found->second];
  }

  // The first tensor that a variable gives or takes says what it is.
  Status Declare(std::size_t like, Variable* variable) {
    if (variable->declared) return {};
    variable->declared = true;
    order_.push_back(variable);
    return AddInput(variable->name, like);
  }

  Status ReadVariable(const OperatorPlace& place) {
    if (Status fits = CheckCounts(place, 1, 1); !fits) return fits;
    const Result<Variable*> variable = VariableOf(place);
    if (!variable) return Forward(variable);
    const auto index = static_cast<std::size_t>(At(place.op->outputs(), 0));
    if (graph_inputs_.contains(index) || !computed_.insert(index).second)
      return Invalid("{}: output 0 is {}, which has a value before", place.text, TensorText(index));
    if (Status declared = Declare(index, *variable); !declared) return Forward(declared, place.text);
    aliases_[index] = (*variable)->current;
    return {};
  }

  Status AssignVariable(const OperatorPlace& place) {
    if (Status fits = CheckCounts(place, 2, 0); !fits) return fits;
    const Result<Variable*> variable = VariableOf(place);
    if (!variable) return Forward(variable);
    const auto index = static_cast<std::size_t>(At(place.op->inputs(), 1));
    const Result<std::string> name = NameOf(index);
    if (!name) return Forward(name, place.text);
    if (Status declared = Declare(index, *variable); !declared) return Forward(declared, place.text);
    (*variable)->current = *name;
    (*variable)->assigned = true;
    return {};
  }

  // Reads what a subgraph stores in variables before the first run, and notes it as metadata.
  Status AddInitialValues(const OperatorPlace& place) {
    const tflite::Fields* given = nullptr;
    if (Status found = FindOptions(place, *tflite::OptionsOf(place.code), &given); !found) return found;
    const std::int32_t number = given == nullptr ? 0 : given->Scalar<std::int32_t>(tflite::kInitSubgraph, 0);
    if (number < 1 || static_cast<std::size_t>(number) >= SizeOf(model_.subgraphs())) {
      return Invalid("{} calls subgraph {}, expected 1 to {}", place.text, number,
                     SizeOf(model_.subgraphs()) - 1);
    }
    const tflite::SubGraph& graph = *At(model_.subgraphs(), static_cast<std::size_t>(number));
    std::map<std::size_t, Resource> handles;
    const Status read = ForEachOperator(graph, [&](const OperatorPlace& inner) -> Status {
      if (inner.code == tflite::kVarHandle) {
        Result<Resource> resource = ResourceOf(inner);
        if (!resource) return Forward(resource);
        handles[static_cast<std::size_t>(At(inner.op->outputs(), 0))] = *std::move(resource);
        return {};
      }
      if (inner.code != tflite::kAssignVariable)
        return Refuse("{}: only constants can be stored in variables before the first run", inner.text);
      if (Status fits = CheckCounts(inner, 2, 0); !fits) return fits;
      const auto handle = handles.find(static_cast<std::size_t>(At(inner.op->inputs(), 0)));
      if (handle == handles.end())
        return Invalid("{}: no VAR_HANDLE before it gives its input 0", inner.text);
      const auto index = static_cast<std::size_t>(At(inner.op->inputs(), 1));
      const std::string text = fmt::format("{}: tensor {}", inner.text, index);
      const Result<std::optional<std::string>> bytes = BytesOf(*At(graph.tensors(), index), text);
      if (!bytes) return Forward(bytes);
      if (!*bytes) return Refuse("{} is no constant, so what the variable begins with is not known", text);
      initial_[handle->second] = **bytes;
      return {};
    });
    return read ? read : Forward(read, fmt::format("{}: subgraph {}", place.text, number));
  }

  Status AddOutputs() {
    if (Status fits = CheckIndices(*main_, main_->outputs(), "output", false); !fits) return fits;
    for (std::size_t i = 0; i < SizeOf(main_->outputs()); ++i) {
      const auto index = static_cast<std::size_t>(At(main_->outputs(), i));
      const Result<std::string> name = NameOf(index);
      if (!name) return Forward(name, fmt::format("output {}", i));
      AddOutput(*name == tensor_names_[index] && !graph_inputs_.contains(index)
                    ? *name
                    : Copy(*name, tensor_names_[index]));
    }
    for (const Variable* variable : order_) {
      if (variable->assigned) AddOutput(Copy(variable->current, variable->name + ".next"));
      if (Status noted = NoteInitial(*variable); !noted) return noted;
    }
    return {};
  }

  void AddOutput(const std::string& name) { graph_.add_output()->set_name(name); }

  std::string Copy(const std::string& from, const std::string& wanted) {
    onnx::NodeProto* node = graph_.add_node();
    node->set_op_type("Identity");
    node->add_input(from);
    node->add_output(Unique(wanted));
    return node->output(0);
  }

  // The metadata names the byte that fills a variable at first.
  Status NoteInitial(const Variable& variable) {
    const auto found = initial_.find(variable.resource);
    const std::string bytes = found == initial_.end() ? std::string(1, '\0') : found->second;
    if (bytes.find_first_not_of(bytes.front()) != std::string::npos) {
      return Refuse("variable '{}' begins with bytes that differ, which is not supported",
                    Printable(variable.name, kMostShownBytes));
    }
    onnx::StringStringEntryProto* entry = out_.add_metadata_props();
    entry->set_key("variable " + variable.name);
    entry->set_value(std::to_string(static_cast<unsigned char>(bytes.front())));
    return {};
  }

  const tflite::Model& model_;
  const flatbuffers::Verifier& verifier_;
  onnx::ModelProto& out_;
  onnx::GraphProto& graph_;
  const tflite::SubGraph* main_ = nullptr;
  std::set<std::string> names_;
  std::vector<std::string> tensor_names_;  // by the tensors' indices in the main graph
  std::set<std::size_t> graph_inputs_, computed_, constants_;
  std::map<std::size_t, std::string> aliases_;  // what READ_VARIABLE gives
  std::map<std::size_t, std::pair<std::string, std::string>> quantizations_;
  std::map<std::size_t, Resource> handles_;
  std::map<Resource, Variable> variables_;
  std::vector<const Variable*> order_;  // that of their inputs
  std::map<Resource, std::string> initial_;
};

}  // namespace

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
  flatbuffers::Verifier verifier(bytes, aligned.view.size(), kMostTableDepth, kMostTables);
  if (!verifier.VerifyBuffer<tflite::Model>(tflite::kIdentifier)) {
    return Fail(StatusCode::kInvalidFile,
                "not a whole .tflite file: a table, vector or text lies outside it; copy the file again");
  }
  return Reader(*flatbuffers::GetRoot<tflite::Model>(bytes), verifier, model).Read();
}

}  // namespace rewire::compiler

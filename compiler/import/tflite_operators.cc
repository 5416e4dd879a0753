// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/tflite_operators.h"

#include <cstdint>
#include <string>
#include <utility>

#include "rewire/compiler/import/tflite_text.h"

namespace rewire::compiler::tflite {

Status OperatorReader::CheckIndices(const SubGraph& graph, const Numbers* indices, const std::string& what,
                                    bool may_lack) const {
  for (std::size_t i = 0; i < SizeOf(indices); ++i) {
    const std::int32_t index = At(indices, i);
    if (index == -1 && may_lack) continue;
    if (index < 0 || static_cast<std::size_t>(index) >= SizeOf(graph.tensors())) {
      return Invalid("{} {} is tensor {}, and the subgraph has {}", what, i, index, SizeOf(graph.tensors()));
    }
  }
  return {};
}

Status OperatorReader::ForEach(const SubGraph& graph,
                               const std::function<Status(const OperatorPlace&)>& function) const {
  for (std::size_t i = 0; i < SizeOf(graph.operators()); ++i) {
    const Operator* op = At(graph.operators(), i);
    if (op->opcode_index() >= SizeOf(model_.operator_codes())) {
      return Invalid("operator {} has operator code {}, and the file has {}", i, op->opcode_index(),
                     SizeOf(model_.operator_codes()));
    }
    const std::int32_t code = At(model_.operator_codes(), op->opcode_index())->builtin_code();
    const OperatorPlace place{op, code, fmt::format("operator {} ({})", i, NameOfBuiltin(code))};
    if (Status fits = CheckIndices(graph, op->inputs(), place.text + ": input", true); !fits) return fits;
    if (Status fits = CheckIndices(graph, op->outputs(), place.text + ": output", false); !fits) return fits;
    if (Status done = function(place); !done) return done;
  }
  return {};
}

Status OperatorReader::FindOptions(const OperatorPlace& place, const Options& options,
                                   const Fields** found) const {
  const Fields* given = place.op->options();
  *found = given;
  if (given == nullptr) return {};
  if (place.op->options_type() != options.type) {
    return Invalid("{} has options of kind {}, expected kind {}", place.text, place.op->options_type(),
                   options.type);
  }
  for (const OptionField& field : options.fields) {
    bool sound = true;
    switch (field.kind) {
      case OptionField::kByte:
        sound = given->VerifyScalar<std::int8_t>(verifier_, field.field);
        break;
      case OptionField::kInt:
        sound = given->VerifyScalar<std::int32_t>(verifier_, field.field);
        break;
      case OptionField::kFloat:
        sound = given->VerifyScalar<float>(verifier_, field.field);
        break;
      case OptionField::kInts:
        sound = given->VerifyNumbers<std::int32_t>(verifier_, field.field);
        break;
      case OptionField::kText:
        sound = given->VerifyText(verifier_, field.field);
        break;
    }
    if (!sound) return Invalid("{}: its option {} lies outside the file", place.text, field.name);
  }
  return {};
}

Status OperatorReader::AddAttributes(const OperatorPlace& place, const Options* options,
                                     onnx::NodeProto* node) const {
  if (options == nullptr) return {};
  const Fields* given = nullptr;
  if (Status found = FindOptions(place, *options, &given); !found) return found;
  for (const OptionField& field : options->fields) {
    onnx::AttributeProto attribute;
    attribute.set_name(field.name);
    attribute.set_type(field.kind == OptionField::kFloat  ? onnx::AttributeProto::FLOAT
                       : field.kind == OptionField::kInts ? onnx::AttributeProto::INTS
                                                          : onnx::AttributeProto::INT);
    const auto fallback = static_cast<std::int32_t>(field.fallback);
    switch (field.kind) {
      case OptionField::kByte:
        attribute.set_i(given == nullptr
                            ? fallback
                            : given->Scalar<std::int8_t>(field.field, static_cast<std::int8_t>(fallback)));
        break;
      case OptionField::kInt:
        attribute.set_i(given == nullptr ? fallback : given->Scalar<std::int32_t>(field.field, fallback));
        break;
      case OptionField::kFloat:
        attribute.set_f(given == nullptr ? field.fallback
                                         : given->Scalar<float>(field.field, field.fallback));
        break;
      case OptionField::kInts: {
        const auto* list = given == nullptr ? nullptr : given->Pointer<Numbers>(field.field);
        if (list == nullptr) continue;
        for (std::size_t i = 0; i < list->size(); ++i) attribute.add_ints(At(list, i));
        break;
      }
      case OptionField::kText:
        continue;  // names of variables, which are no attributes of nodes
    }
    *node->add_attribute() = std::move(attribute);
  }
  return {};
}

Status CheckCounts(const OperatorPlace& place, std::size_t inputs, std::size_t outputs) {
  const std::size_t has_inputs = SizeOf(place.op->inputs()), has_outputs = SizeOf(place.op->outputs());
  bool all_there = true;
  for (std::size_t i = 0; i < has_inputs; ++i) all_there = all_there && At(place.op->inputs(), i) >= 0;
  if (has_inputs == inputs && has_outputs == outputs && all_there) return {};
  return Invalid("{} has {} inputs and {} outputs, expected {} and {}", place.text, has_inputs, has_outputs,
                 inputs, outputs);
}

}  // namespace rewire::compiler::tflite

// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/tflite_variables.h"

#include "rewire/compiler/import/tflite_text.h"

namespace rewire::compiler::tflite {

Result<Variables::Resource> Variables::ResourceOf(const OperatorPlace& place) const {
  if (Status fits = CheckCounts(place, 0, 1); !fits) return Forward(fits);
  const Fields* given = nullptr;
  if (Status found = operators_.FindOptions(place, *OptionsOf(place.code), &given); !found)
    return Forward(found);
  if (given == nullptr) return Resource();
  return Resource(TextOf(given->Pointer<flatbuffers::String>(kContainer)),
                  TextOf(given->Pointer<flatbuffers::String>(kSharedName)));
}

Status Variables::AddHandle(const OperatorPlace& place) {
  const Result<Resource> resource = ResourceOf(place);
  if (!resource) return Forward(resource);
  handles_[static_cast<std::size_t>(At(place.op->outputs(), 0))] = *resource;
  Variable& variable = variables_[*resource];
  if (!variable.name.empty()) return {};
  variable.name =
      tensors_.Unique(NameOr(resource->second, fmt::format("variable {}", variables_.size() - 1)));
  variable.current = variable.name;
  variable.resource = *resource;
  return {};
}

Result<Variables::Variable*> Variables::VariableOf(const OperatorPlace& place) {
  const auto found = handles_.find(static_cast<std::size_t>(At(place.op->inputs(), 0)));
  if (found == handles_.end()) {
    return Invalid("{}: its input 0 is {}, which no VAR_HANDLE before it gives", place.text,
                   tensors_.Text(static_cast<std::size_t>(At(place.op->inputs(), 0))));
  }
  return &variables_[found->second];
}

Status Variables::Declare(std::size_t like, Variable* variable) {
  if (variable->declared) return {};
  variable->declared = true;
  order_.push_back(variable);
  return tensors_.AddInput(variable->name, like);
}

Status Variables::Read(const OperatorPlace& place) {
  if (Status fits = CheckCounts(place, 1, 1); !fits) return fits;
  const Result<Variable*> variable = VariableOf(place);
  if (!variable) return Forward(variable);
  const auto index = static_cast<std::size_t>(At(place.op->outputs(), 0));
  if (Status computed = tensors_.Compute(index, place.text + ": output 0"); !computed) return computed;
  if (Status declared = Declare(index, *variable); !declared) return Forward(declared, place.text);
  tensors_.SetAlias(index, (*variable)->current);
  return {};
}

Status Variables::Assign(const OperatorPlace& place) {
  if (Status fits = CheckCounts(place, 2, 0); !fits) return fits;
  const Result<Variable*> variable = VariableOf(place);
  if (!variable) return Forward(variable);
  const auto index = static_cast<std::size_t>(At(place.op->inputs(), 1));
  const Result<std::string> name = tensors_.Read(index);
  if (!name) return Forward(name, place.text);
  if (Status declared = Declare(index, *variable); !declared) return Forward(declared, place.text);
  (*variable)->current = *name;
  (*variable)->assigned = true;
  return {};
}

Status Variables::AddInitialValues(const OperatorPlace& place) {
  const Fields* given = nullptr;
  if (Status found = operators_.FindOptions(place, *OptionsOf(place.code), &given); !found) return found;
  const std::int32_t number = given == nullptr ? 0 : given->Scalar<std::int32_t>(kInitSubgraph, 0);
  if (number < 1 || static_cast<std::size_t>(number) >= SizeOf(model_.subgraphs())) {
    return Invalid("{} calls subgraph {}, expected 1 to {}", place.text, number,
                   SizeOf(model_.subgraphs()) - 1);
  }
  const SubGraph& graph = *At(model_.subgraphs(), static_cast<std::size_t>(number));
  std::map<std::size_t, Resource> handles;
  const Status read = operators_.ForEach(graph, [&](const OperatorPlace& inner) -> Status {
    if (inner.code == kVarHandle) {
      Result<Resource> resource = ResourceOf(inner);
      if (!resource) return Forward(resource);
      handles[static_cast<std::size_t>(At(inner.op->outputs(), 0))] = *std::move(resource);
      return {};
    }
    if (inner.code != kAssignVariable)
      return Refuse("{}: only constants can be stored in variables before the first run", inner.text);
    if (Status fits = CheckCounts(inner, 2, 0); !fits) return fits;
    const auto handle = handles.find(static_cast<std::size_t>(At(inner.op->inputs(), 0)));
    if (handle == handles.end()) return Invalid("{}: no VAR_HANDLE before it gives its input 0", inner.text);
    const auto index = static_cast<std::size_t>(At(inner.op->inputs(), 1));
    const std::string text = fmt::format("{}: tensor {}", inner.text, index);
    const Result<std::optional<std::string>> bytes = tensors_.BytesOf(*At(graph.tensors(), index), text);
    if (!bytes) return Forward(bytes);
    if (!*bytes) return Refuse("{} is no constant, so what the variable begins with is not known", text);
    initial_[handle->second] = **bytes;
    return {};
  });
  return read ? read : Forward(read, fmt::format("{}: subgraph {}", place.text, number));
}

Status Variables::AddOutputs(const std::function<void(const std::string&, const std::string&)>& add) {
  for (const Variable* variable : order_) {
    if (variable->assigned) add(variable->current, variable->name + ".next");
    if (Status noted = NoteInitial(*variable); !noted) return noted;
  }
  return {};
}

Status Variables::NoteInitial(const Variable& variable) {
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

}  // namespace rewire::compiler::tflite

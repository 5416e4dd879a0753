// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/ports.h"

#include <nlohmann/json.hpp>
#include <set>

#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

using nlohmann::json;

// The metadata's entry as JSON; a discarded value if there is none. Anyone may have written the file.
json Entry(const Module& module, const std::string& key) {
  for (const auto& [name, value] : module.metadata) {
    if (name == key) return json::parse(value, nullptr, false);
  }
  return json(json::value_t::discarded);
}

std::optional<ListParts> PartsOf(const json& entry, std::size_t places) {
  if (!entry.is_object()) return std::nullopt;
  const auto offsets = entry.find("offsets");
  const auto bytes = entry.find("bytes");
  if (offsets == entry.end() || bytes == entry.end() || !offsets->is_number_unsigned() ||
      !bytes->is_number_unsigned())
    return std::nullopt;
  const auto first = offsets->get<std::uint64_t>();
  const auto second = bytes->get<std::uint64_t>();
  if (first >= places || second >= places) return std::nullopt;
  return ListParts{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)};
}

void ReadKeys(const json& entry, Port* port) {
  if (!entry.is_array()) return;
  for (const json& key : entry) {
    if (key.is_string()) port->text_keys.push_back(key.get<std::string>());
    if (key.is_number_integer()) port->number_keys.push_back(key.get<std::int64_t>());
  }
}

// The type of a tensor by the executable's signature, which has found out more than the model declares.
// Symbols that the model does not name have names of the compiler's; hosts see them as open.
OrtTypeInfo TypeOfNode(const TypeNode& node, const Module& module, const std::set<std::string>& known) {
  OrtTypeInfo type;
  if (node.kind != TypeKind::kTensor) {
    type.kind = node.kind == TypeKind::kInteger ? ONNX_TYPE_TENSOR : ONNX_TYPE_SEQUENCE;
    if (node.kind == TypeKind::kInteger) type.tensor.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    return type;
  }
  type.tensor.type = ElementTypeOf(node.dtype);
  type.tensor.has_shape = node.rank != kUnknownRank;
  for (const Dim dim : node.dims) {
    type.tensor.dims.push_back(dim < 0 ? -1 : dim);
    std::string name = IsSymbol(dim) ? module.symbols[SymbolOf(dim)] : std::string();
    if (known.count(name) == 0) name.clear();
    type.tensor.names.push_back(std::move(name));
  }
  return type;
}

void AsStrings(Port* port) { port->type.tensor.type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }

// A sequence of maps, in place of the tensor that stands for it.
void AsMaps(Port* port) {
  OrtTypeInfo value;
  value.tensor.type = port->type.tensor.type;
  OrtTypeInfo map;
  map.kind = ONNX_TYPE_MAP;
  map.map.key =
      port->text_keys.empty() ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  map.map.value = std::make_shared<OrtTypeInfo>(std::move(value));
  OrtTypeInfo sequence;
  sequence.kind = ONNX_TYPE_SEQUENCE;
  sequence.sequence.element = std::make_shared<OrtTypeInfo>(std::move(map));
  port->type = std::move(sequence);
}

Status CheckServed(const char* what, const Port& port) {
  if (port.type.kind == ONNX_TYPE_SPARSETENSOR || port.type.kind == ONNX_TYPE_UNKNOWN ||
      port.type.kind == ONNX_TYPE_OPAQUE)
    return Fail(StatusCode::kUnsupported, "{} '{}' has a type that Rewire's libonnxruntime does not serve",
                what, port.name);
  return {};
}

// The model declares more than the signature knows for sequences and optionals.
void TakeDeclared(const std::vector<DeclaredValue>& declared, Port* port) {
  for (const DeclaredValue& value : declared) {
    if (value.name != port->name) continue;
    port->type.denotation = value.type.denotation;
    const bool is_tensor = value.type.kind == ONNX_TYPE_TENSOR && port->type.kind == ONNX_TYPE_TENSOR;
    if (value.type.kind != ONNX_TYPE_UNKNOWN && !is_tensor) port->type = value.type;
  }
}

// The names of dimensions that hosts see. An executable does not keep which of its symbols the model names.
// Others are named after the place of a dimension, as "x.1".
std::set<std::string> KnownDims(const ModelText& text, const Module& module, const Function& function) {
  if (!text.outputs.empty()) return text.dims;
  std::set<std::string> known(module.symbols.begin(), module.symbols.end());
  for (const NamedType& input : function.inputs) {
    for (std::size_t i = 0; i < input.type.nodes[0].dims.size(); ++i)
      known.erase(input.name + "." + std::to_string(i));
  }
  return known;
}

}  // namespace

Result<Ports> ReadPorts(const Program& program, std::uint32_t function_index, const ModelText& text) {
  const Module& module = program.executable().module();
  const Function& function = module.functions[function_index];
  const std::set<std::string> known = KnownDims(text, module, function);
  Ports ports;
  ports.input_places = static_cast<std::uint32_t>(function.inputs.size());
  std::set<std::uint32_t> hidden;
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    Port port;
    port.name = function.inputs[i].name;
    port.place = i;
    port.type = TypeOfNode(function.inputs[i].type.nodes[0], module, known);
    TakeDeclared(text.inputs, &port);
    port.parts = PartsOf(Entry(module, "input strings " + function.name + "." + std::to_string(i)),
                         function.inputs.size());
    if (port.parts) {
      hidden.insert({port.parts->offsets, port.parts->bytes});
      AsStrings(&port);
    }
    ports.inputs.push_back(std::move(port));
  }
  const auto is_hidden = [&](const Port& port) { return hidden.count(port.place) != 0; };
  ports.inputs.erase(std::remove_if(ports.inputs.begin(), ports.inputs.end(), is_hidden), ports.inputs.end());

  hidden.clear();
  const Array<std::uint32_t> leaves = Leaves(function.result);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    Port port;
    port.name = i < function.output_names.size() ? function.output_names[i] : std::to_string(i);
    port.place = i;
    port.type = TypeOfNode(function.result.nodes[leaves[i]], module, known);
    const std::string place = function.name + "." + std::to_string(i);
    const json strings = Entry(module, "strings " + place);
    port.parts = PartsOf(strings, leaves.size());
    if (port.parts) hidden.insert({port.parts->offsets, port.parts->bytes});
    if (strings.is_array()) {
      port.list.emplace();
      for (const json& each : strings) port.list->push_back(each.is_string() ? each.get<std::string>() : "");
    }
    if (port.parts || port.list) AsStrings(&port);
    ReadKeys(Entry(module, "keys " + place), &port);
    if (port.has_keys()) AsMaps(&port);
    TakeDeclared(text.outputs, &port);
    ports.outputs.push_back(std::move(port));
  }
  ports.outputs.erase(std::remove_if(ports.outputs.begin(), ports.outputs.end(), is_hidden),
                      ports.outputs.end());

  for (const DeclaredValue& value : text.overridable) {
    Port& port = ports.overridable.emplace_back();
    port.name = value.name;
    port.type = value.type;
  }
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    if (Status served = CheckServed("input", ports.inputs[i]); !served) return Forward(served);
    ports.input_by_name[ports.inputs[i].name] = i;
  }
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    if (Status served = CheckServed("output", ports.outputs[i]); !served) return Forward(served);
    ports.output_by_name[ports.outputs[i].name] = i;
  }
  return ports;
}

}  // namespace rewire::onnxruntime_api

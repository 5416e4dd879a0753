// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/executable_format/metadata/model_metadata_keys.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kWidth = 80;  // of a page

// "1 kernel", "2 kernels".
std::string Count(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string TextOf(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return '"' + text + '"'; }
    std::string operator()(const Array<std::int64_t>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
    std::string operator()(const Array<double>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
  };
  return std::visit(Visitor(), value);
}

const char* KindName(ConstantKind kind) {
  switch (kind) {
    case ConstantKind::kData:
      return "data";
    case ConstantKind::kParameter:
      return "parameter";
    case ConstantKind::kComputed:
      return "computed";
  }
  return "?";
}

std::string CodecText(std::uint32_t codec) {
  if (codec == kCodecNone) return "";
  return codec == kCodecZstd ? "zstd" : fmt::format("codec {}", codec);
}

Rows SignatureRows(const Function& function, const Module& module) {
  Rows rows;
  for (const NamedType& input : function.inputs) {
    rows.push_back({rows.empty() ? "  inputs" : "", input.name, TypeText(input.type, module.symbols)});
  }
  const Array<std::uint32_t> leaves = Leaves(function.result);
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    rows.push_back({i == 0 ? "  outputs" : "", OutputName(function, i),
                    NodeText(function.result.nodes[leaves[i]], module)});
  }
  return rows;
}

std::uint64_t CodeBytes(const DeviceCodeEntry& entry, const Module& module) {
  return module.constants[entry.constant].raw_bytes;
}

// "test.scale(x: f32[n]@1) -> (y: f32[n]@1)"
std::string DeviceKernelText(const DeviceKernelEntry& kernel, const Module& module) {
  std::string text = kernel.name + "(";
  const std::size_t read = kernel.parameters.size() - kernel.outputs;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (i == read) text += ") -> (";
    if (text.back() != '(') text += ", ";
    text += kernel.parameters[i].name + ": " + NodeText(kernel.parameters[i].type, module);
  }
  return text + ")";
}

void AddDeviceCode(const Module& module, std::string* text) {
  if (module.device_code.empty()) return;
  Rows rows;
  for (const DeviceCodeEntry& entry : module.device_code) {
    rows.push_back({entry.name, std::string(DeviceCodeFormName(entry.form)), entry.architecture,
                    BytesText(CodeBytes(entry, module))});
  }
  *text += fmt::format("\ndevice code (runs only with --trust-device-code): {}\n", rows.size()) +
           TableText(rows, {3}, kWidth);
  Rows kernels;
  for (const DeviceKernelEntry& kernel : module.device_kernels) {
    kernels.push_back({DeviceKernelText(kernel, module), "in " + kernel.code});
  }
  *text += fmt::format("\nkernels in it: {}\n", kernels.size()) + TableText(kernels, {}, kWidth);
}

Json DeviceCodeJson(const Module& module) {
  Json blobs = Json::array();
  for (const DeviceCodeEntry& entry : module.device_code) {
    blobs.push_back({{"name", entry.name},
                     {"form", DeviceCodeFormName(entry.form)},
                     {"architecture", entry.architecture},
                     {"bytes", CodeBytes(entry, module)}});
  }
  Json kernels = Json::array();
  for (const DeviceKernelEntry& kernel : module.device_kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"code", kernel.code},
                       {"symbol", kernel.symbol},
                       {"text", DeviceKernelText(kernel, module)}});
  }
  return {{"blobs", std::move(blobs)}, {"kernels", std::move(kernels)}};
}

void AddConstants(const Module& module, ConstantKind kind, const char* heading, std::string* text) {
  const Array<std::uint8_t> is_code = ConstantsOfDeviceCode(module);
  Rows rows;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    const Constant& constant = module.constants[i];
    if (constant.kind != kind || is_code[i]) continue;
    total += constant.raw_bytes;
    const std::string name = constant.name.empty() ? fmt::format("#{}", i) : constant.name;
    std::string stored = CodecText(constant.codec);
    if (!stored.empty()) stored += fmt::format(", {} in the file", BytesText(constant.stored.view.size()));
    rows.push_back({name, NodeText(constant.type, module),
                    kind == ConstantKind::kData ? BytesText(constant.raw_bytes) : "", stored});
  }
  if (rows.empty()) return;
  *text += fmt::format("\n{}: {}", heading, rows.size());
  if (kind == ConstantKind::kData) *text += ", " + BytesText(total);
  *text += "\n" + TableText(rows, {2}, kWidth);
}

}  // namespace

std::string NodeText(const TypeNode& node, const Module& module) {
  Type type;
  type.nodes.push_back(node);
  return TypeText(type, module.symbols);
}

std::string KernelText(const KernelImport& import) {
  if (import.attributes.empty()) return import.name;
  std::string attributes;
  for (const Attribute& attribute : import.attributes) {
    attributes += (attributes.empty() ? "" : ", ") + attribute.name + "=" + TextOf(attribute.value);
  }
  return fmt::format("{}({})", import.name, attributes);
}

std::string MetadataText(const Module& module) {
  std::string text;
  for (const auto& [key, value] : module.metadata) {
    // Thousands of names of values, for tools. The model's own metadata follows.
    if (key.rfind("values ", 0) != 0 && key.rfind(model_metadata::kPrefix, 0) != 0)
      text += fmt::format("  {}: {}\n", key, value);
  }
  const ModelMetadata model = ReadModelMetadata(module);
  for (const auto& [key, field] : model_metadata::kTexts) {
    if (!(model.*field).empty()) text += fmt::format("  {}: {}\n", key, model.*field);
  }
  if (model.version != 0) text += fmt::format("  {}: {}\n", model_metadata::kVersion, model.version);
  for (const auto& [key, value] : model.properties) text += fmt::format("  property {}: {}\n", key, value);
  return text;
}

Json MetadataJson(const Module& module) {
  Json json = Json::object();
  for (const auto& [key, value] : module.metadata) json[key] = value;
  return json;
}

Json ModelJson(const Module& module) {
  const ModelMetadata model = ReadModelMetadata(module);
  Json properties = Json::object();
  for (const auto& [key, value] : model.properties) properties[key] = value;
  return {{"producer", model.producer}, {"producer_version", model.producer_version},
          {"domain", model.domain},     {"description", model.description},
          {"graph", model.graph},       {"graph_description", model.graph_description},
          {"version", model.version},   {"properties", std::move(properties)}};
}

std::string InterfaceText(const Module& module) {
  std::string text;
  std::size_t functions = 0;
  for (const Function& function : module.functions) {
    if (function.name == kInitFunction) continue;
    ++functions;
    text += fmt::format("  {}\n", function.name) + TableText(SignatureRows(function, module), {}, kWidth);
  }
  text = fmt::format("functions: {}\n", functions) + text;
  AddConstants(module, ConstantKind::kParameter, "parameters", &text);
  AddDeviceCode(module, &text);
  const Array<std::uint8_t> is_code = ConstantsOfDeviceCode(module);
  std::uint64_t bytes = 0;
  std::size_t constants = 0;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind != ConstantKind::kData || is_code[i]) continue;
    ++constants;
    bytes += module.constants[i].raw_bytes;
  }
  return text + fmt::format("\ninside: {}, {} of {}; vm-inspect --all lists them\n",
                            Count(module.kernels.size(), "kernel"), Count(constants, "constant"),
                            BytesText(bytes));
}

std::string ListingText(const Module& module) {
  std::string text = fmt::format("functions: {}\n", module.functions.size());
  for (const Function& function : module.functions) {
    text += fmt::format("  {} ({}, {} of code)\n", function.name, Count(function.register_count, "register"),
                        BytesText(function.code.size() * sizeof(std::uint32_t)));
    text += TableText(SignatureRows(function, module), {}, kWidth);
  }
  AddConstants(module, ConstantKind::kParameter, "parameters", &text);
  AddDeviceCode(module, &text);
  if (!module.kernels.empty()) {
    Rows rows;
    for (const KernelImport& import : module.kernels) rows.push_back({import.debug_name, KernelText(import)});
    text += fmt::format("\nkernels: {}\n", module.kernels.size()) + TableText(rows, {}, kWidth);
  }
  AddConstants(module, ConstantKind::kData, "constants", &text);
  AddConstants(module, ConstantKind::kComputed, "computed by __init", &text);
  return text;
}

Json ListingJson(const Module& module) {
  Json functions = Json::array();
  for (const Function& function : module.functions) {
    Json inputs = Json::array();
    for (const NamedType& input : function.inputs) {
      inputs.push_back({{"name", input.name}, {"type", TypeText(input.type, module.symbols)}});
    }
    Json outputs = Json::array();
    const Array<std::uint32_t> leaves = Leaves(function.result);
    for (std::uint32_t i = 0; i < leaves.size(); ++i) {
      outputs.push_back(
          {{"name", OutputName(function, i)}, {"type", NodeText(function.result.nodes[leaves[i]], module)}});
    }
    functions.push_back({{"name", function.name},
                         {"inputs", std::move(inputs)},
                         {"outputs", std::move(outputs)},
                         {"registers", function.register_count},
                         {"code_bytes", function.code.size() * sizeof(std::uint32_t)}});
  }
  Json constants = Json::array();
  for (const Constant& constant : module.constants) {
    constants.push_back({{"name", constant.name},
                         {"kind", KindName(constant.kind)},
                         {"type", NodeText(constant.type, module)},
                         {"bytes", constant.raw_bytes},
                         {"stored_bytes", constant.stored.view.size()},
                         {"codec", CodecText(constant.codec)}});
  }
  Json kernels = Json::array();
  for (const KernelImport& import : module.kernels) {
    kernels.push_back(
        {{"name", import.name}, {"debug_name", import.debug_name}, {"text", KernelText(import)}});
  }
  return {{"functions", std::move(functions)},
          {"kernels", std::move(kernels)},
          {"device_code", DeviceCodeJson(module)},
          {"constants", std::move(constants)}};
}

}  // namespace rewire::tools

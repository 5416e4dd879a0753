// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/module_size.h"

#include <string>
#include <variant>

namespace rewire {
namespace {

constexpr std::uint64_t kRecord = 16;  // the fixed part of most records, and of a type's nodes

std::uint64_t TextSize(const std::string& text) { return 4 + text.size(); }

std::uint64_t TypeSize(const Type& type) {
  std::uint64_t size = 4;
  for (const TypeNode& node : type.nodes) size += kRecord + node.dims.size() * sizeof(Dim);
  return size;
}

std::uint64_t KernelSize(const KernelImport& kernel) {
  std::uint64_t size =
      kRecord + TextSize(kernel.name) + TextSize(kernel.debug_name) + 4 * kernel.also_written.size();
  for (const Attribute& attribute : kernel.attributes) {
    size += kRecord + TextSize(attribute.name);
    if (const auto* text = std::get_if<std::string>(&attribute.value)) size += text->size();
    if (const auto* integers = std::get_if<Array<std::int64_t>>(&attribute.value))
      size += 8 * integers->size();
    if (const auto* reals = std::get_if<Array<double>>(&attribute.value)) size += 8 * reals->size();
  }
  return size;
}

std::uint64_t DeviceKernelSize(const DeviceKernelEntry& kernel) {
  std::uint64_t size = 2 * kRecord + TextSize(kernel.name) + TextSize(kernel.code) + TextSize(kernel.symbol);
  for (const DeviceParameter& parameter : kernel.parameters) {
    size += kRecord + TextSize(parameter.name) + parameter.type.dims.size() * sizeof(Dim);
  }
  for (const DeviceArgument& argument : kernel.arguments)
    size += 2 * kRecord + 8 * argument.value.words.size();
  for (const SizeExpression& each : kernel.groups) size += 4 + 8 * each.words.size();
  for (const SizeExpression& each : kernel.threads) size += 4 + 8 * each.words.size();
  return size + 4 + 8 * kernel.shared_bytes.words.size();
}

std::uint64_t FunctionSize(const Function& function) {
  std::uint64_t size = kRecord + TextSize(function.name) + TypeSize(function.result);
  for (const NamedType& input : function.inputs) size += TextSize(input.name) + TypeSize(input.type);
  for (const std::string& name : function.output_names) size += TextSize(name);
  for (const SourceNote& note : function.notes) size += 4 + TextSize(note.text);
  return size + 4 * function.code.size();
}

}  // namespace

std::uint64_t ModuleSize(const Module& module) {
  std::uint64_t size = 0;
  for (const DeviceEntry& device : module.devices) size += 8 + TextSize(device.memory_scope);
  for (const std::string& symbol : module.symbols) size += 8 + TextSize(symbol);
  for (const std::string& text : module.strings) size += TextSize(text);
  for (const auto& [key, value] : module.metadata) size += TextSize(key) + TextSize(value);
  for (const Constant& constant : module.constants) {
    size += 3 * kRecord + TextSize(constant.name) + constant.type.dims.size() * sizeof(Dim);
  }
  for (const KernelImport& kernel : module.kernels) size += KernelSize(kernel);
  for (const DeviceCodeEntry& entry : module.device_code) {
    size += kRecord + TextSize(entry.name) + TextSize(entry.architecture);
  }
  for (const DeviceKernelEntry& kernel : module.device_kernels) size += DeviceKernelSize(kernel);
  for (const Function& function : module.functions) size += FunctionSize(function);
  return size;
}

}  // namespace rewire

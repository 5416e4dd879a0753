// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/executable.h"

#include <memory>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/names/no_function.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Fail;
using rewire::Format;
using rewire::Forward;
using rewire::Function;
using rewire::Module;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::TypeNode;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::OutOfRange;
using rewire::c_api::Require;
using rewire::c_api::WriteStruct;

namespace rewire::c_api {

Status DeadlineOf(std::int64_t timeout, std::chrono::steady_clock::time_point* deadline) {
  if (timeout < 0) return Fail(StatusCode::kInvalidArgument, "a timeout of {} nanoseconds", timeout);
  if (timeout == 0) return {};
  const auto now = std::chrono::steady_clock::now();
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::time_point::max() - now);
  if (std::chrono::nanoseconds(timeout) < left) *deadline = now + std::chrono::nanoseconds(timeout);
  return {};
}

}  // namespace rewire::c_api

namespace {

Status FillNode(const TypeNode& node, RewireTypeNode* out) {
  RewireTypeNode type{};
  type.kind = static_cast<RewireTypeKind>(node.kind);
  type.dtype = node.dtype;
  type.rank = node.rank;
  type.dims = node.dims.data();
  type.device = node.device;
  type.tag = node.tag;
  type.field_count = node.field_count;
  return WriteStruct("RewireTypeNode", type, out);
}

Result<const Function*> FunctionAt(const RewireExecutable* executable, std::uint32_t index) {
  if (Status ok = Require("executable", executable); !ok) return Forward(ok);
  return rewire::c_api::FunctionOf(executable->executable, index);
}

// The constant behind the index-th parameter.
const rewire::Constant* FindParameter(const Module& module, std::uint32_t index) {
  for (const rewire::Constant& constant : module.constants) {
    if (constant.kind == rewire::ConstantKind::kParameter && index-- == 0) return &constant;
  }
  return nullptr;
}

std::uint32_t CountParameters(const Module& module) {
  std::uint32_t count = 0;
  for (const rewire::Constant& constant : module.constants) {
    if (constant.kind == rewire::ConstantKind::kParameter) ++count;
  }
  return count;
}

std::string SignatureText(const Module& module, const Function& function) {
  std::string text = Format("{}(", function.name);
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    if (i > 0) text += ", ";
    rewire::Append(&text,
                   {"{}: {}", function.inputs[i].name, TypeText(function.inputs[i].type, module.symbols)});
  }
  text += ") -> ";
  // Names stand before the leaves; a tree shows its own structure, its names follow.
  if (function.output_names.size() == 1 && function.result.nodes.size() == 1)
    return Format("{}({}: {})", text, function.output_names[0], TypeText(function.result, module.symbols));
  text += TypeText(function.result, module.symbols);
  for (std::size_t i = 0; i < function.output_names.size(); ++i) {
    text += (i == 0 ? " as " : ", ") + function.output_names[i];
  }
  return text;
}

}  // namespace

void rewire_executable_destroy(RewireExecutable* executable) { delete executable; }

RewireStatus rewire_executable_info(const RewireExecutable* executable, RewireExecutableInfo* info) {
  return Boundary(Given("executable,info", executable, info), [&]() -> Status {
    const Module& module = executable->executable.module();
    RewireExecutableInfo filled{};
    filled.function_count = static_cast<std::uint32_t>(module.functions.size());
    filled.parameter_count = CountParameters(module);
    filled.kernel_count = static_cast<std::uint32_t>(module.kernels.size());
    filled.device_count = static_cast<std::uint32_t>(module.devices.size());
    filled.symbol_count = static_cast<std::uint32_t>(module.symbols.size());
    return WriteStruct("RewireExecutableInfo", filled, info);
  });
}

RewireStatus rewire_executable_function(const RewireExecutable* executable, uint32_t function,
                                        RewireFunctionInfo* info) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    if (Status ok = Require("info", info); !ok) return ok;
    RewireFunctionInfo filled{};
    filled.input_count = static_cast<std::uint32_t>((*found)->inputs.size());
    filled.output_count = static_cast<std::uint32_t>((*found)->output_names.size());
    filled.result_node_count = static_cast<std::uint32_t>((*found)->result.nodes.size());
    filled.name = (*found)->name.c_str();
    return WriteStruct("RewireFunctionInfo", filled, info);
  });
}

RewireStatus rewire_executable_find_function(const RewireExecutable* executable, const char* name,
                                             uint32_t* function) {
  return Boundary(Given("executable,name,function", executable, name, function), [&]() -> Status {
    const auto found = executable->executable.FindFunction(name);
    if (found) {
      *function = *found;
      return {};
    }
    return NoFunction(executable->executable.module(), name);
  });
}

RewireStatus rewire_executable_input(const RewireExecutable* executable, uint32_t function, uint32_t index,
                                     const char** name, uint32_t* node_count) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    const rewire::Array<rewire::NamedType>& inputs = (*found)->inputs;
    if (index >= inputs.size()) return OutOfRange("input", index, inputs.size());
    if (name != nullptr) *name = inputs[index].name.c_str();
    if (node_count != nullptr) *node_count = static_cast<std::uint32_t>(inputs[index].type.nodes.size());
    return {};
  });
}

RewireStatus rewire_executable_input_node(const RewireExecutable* executable, uint32_t function,
                                          uint32_t index, uint32_t node, RewireTypeNode* type) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    if (Status ok = Require("type", type); !ok) return ok;
    const rewire::Array<rewire::NamedType>& inputs = (*found)->inputs;
    if (index >= inputs.size()) return OutOfRange("input", index, inputs.size());
    const rewire::Array<TypeNode>& nodes = inputs[index].type.nodes;
    if (node >= nodes.size()) return OutOfRange("type node", node, nodes.size());
    return FillNode(nodes[node], type);
  });
}

RewireStatus rewire_executable_result_node(const RewireExecutable* executable, uint32_t function,
                                           uint32_t node, RewireTypeNode* type) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    if (Status ok = Require("type", type); !ok) return ok;
    const rewire::Array<TypeNode>& nodes = (*found)->result.nodes;
    if (node >= nodes.size()) return OutOfRange("type node", node, nodes.size());
    return FillNode(nodes[node], type);
  });
}

RewireStatus rewire_executable_output(const RewireExecutable* executable, uint32_t function, uint32_t leaf,
                                      const char** name, RewireTypeNode* type) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    const rewire::Array<std::string>& names = (*found)->output_names;
    if (leaf >= names.size()) return OutOfRange("output", leaf, names.size());
    if (type != nullptr) {
      const rewire::Type& result = (*found)->result;
      if (Status ok = FillNode(result.nodes[Leaves(result)[leaf]], type); !ok) return ok;
    }
    if (name != nullptr) *name = names[leaf].c_str();
    return {};
  });
}

RewireStatus rewire_executable_parameter(const RewireExecutable* executable, uint32_t index,
                                         const char** name, RewireTypeNode* type) {
  return Boundary(Given("executable", executable), [&]() -> Status {
    const Module& module = executable->executable.module();
    const rewire::Constant* parameter = FindParameter(module, index);
    if (parameter == nullptr) return OutOfRange("parameter", index, CountParameters(module));
    if (type != nullptr) {
      if (Status ok = FillNode(parameter->type, type); !ok) return ok;
    }
    if (name != nullptr) *name = parameter->name.c_str();
    return {};
  });
}

RewireStatus rewire_executable_kernel(const RewireExecutable* executable, uint32_t index, const char** name,
                                      const char** debug_name) {
  return Boundary(Given("executable,name", executable, name), [&]() -> Status {
    const rewire::Array<rewire::KernelImport>& kernels = executable->executable.module().kernels;
    if (index >= kernels.size()) return OutOfRange("kernel", index, kernels.size());
    *name = kernels[index].name.c_str();
    if (debug_name != nullptr) *debug_name = kernels[index].debug_name.c_str();
    return {};
  });
}

RewireStatus rewire_executable_device(const RewireExecutable* executable, uint32_t index, DLDevice* device,
                                      const char** memory_scope) {
  return Boundary(Given("executable,device", executable, device), [&]() -> Status {
    const rewire::Array<rewire::DeviceEntry>& devices = executable->executable.module().devices;
    if (index >= devices.size()) return OutOfRange("device", index, devices.size());
    *device = rewire::MakeDevice(devices[index].type, devices[index].id);
    if (memory_scope != nullptr) *memory_scope = devices[index].memory_scope.c_str();
    return {};
  });
}

RewireStatus rewire_executable_symbol(const RewireExecutable* executable, uint32_t index, const char** name) {
  return Boundary(Given("executable,name", executable, name), [&]() -> Status {
    const rewire::Array<std::string>& symbols = executable->executable.module().symbols;
    if (index >= symbols.size()) return OutOfRange("symbol", index, symbols.size());
    *name = symbols[index].c_str();
    return {};
  });
}

RewireStatus rewire_executable_signature_text(const RewireExecutable* executable, uint32_t function,
                                              char* buffer, size_t capacity, size_t* length) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    return rewire::c_api::WriteText(SignatureText(executable->executable.module(), **found), buffer, capacity,
                                    length);
  });
}

RewireStatus rewire_executable_instruction_text(const RewireExecutable* executable, uint32_t function,
                                                uint32_t pc, char* buffer, size_t capacity, size_t* length) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    if (pc >= (*found)->code.size()) return OutOfRange("code word", pc, (*found)->code.size());
    return rewire::c_api::WriteText(
        rewire::InstructionPrinter(executable->executable.module()).Text(**found, pc), buffer, capacity,
        length);
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "vm/c_api/executable.h"

#include <memory>
#include <vector>

#include "base/near_names.h"
#include "executable_format/instruction_text.h"
#include "vm/c_api/boundary.h"
#include "vm/c_api/handles.h"

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

namespace {

template <typename T>
void Override(T given, T* value) {
  if (given != 0) *value = given;
}

}  // namespace

namespace rewire::c_api {

Result<rewire::OpenOptions> OpenOptionsOf(const RewireOpenOptions* given) {
  rewire::OpenOptions options;
  if (given == nullptr) return options;
  RewireOpenOptions read;
  if (Status ok = rewire::c_api::ReadStruct("RewireOpenOptions", given, &read); !ok) return Forward(ok);
  options.verify_data = read.verify_data != 0;
  options.copy = read.copy != 0;
  if (read.limits == nullptr) return options;
  RewireFormatLimits limits;
  if (Status ok = rewire::c_api::ReadStruct("RewireFormatLimits", read.limits, &limits); !ok)
    return Forward(ok);
  Override(limits.functions, &options.limits.functions);
  Override(limits.registers, &options.limits.registers);
  Override(limits.constants, &options.limits.constants);
  Override(limits.kernels, &options.limits.kernels);
  Override(limits.code_words, &options.limits.code_words);
  Override(limits.verifier_state, &options.limits.verifier_state);
  Override(limits.verifier_steps, &options.limits.verifier_steps);
  return options;
}

}  // namespace rewire::c_api

namespace {

// Calls the caller's release function when the last copy goes.
std::shared_ptr<const void> Owner(const void* data, void (*release)(void*), void* context) {
  if (release == nullptr) return nullptr;
  return {data, [release, context](const void*) { release(context); }};
}

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
  const std::vector<Function>& functions = executable->executable.module().functions;
  if (index >= functions.size()) return OutOfRange("function", index, functions.size());
  return &functions[index];
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
    text += Format("{}: {}", function.inputs[i].name, TypeText(function.inputs[i].type, module.symbols));
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

RewireStatus rewire_executable_open(const char* path, const RewireOpenOptions* options,
                                    RewireExecutable** out) {
  return Boundary(Given("path,out", path, out), [&]() -> Status {
    const Result<rewire::OpenOptions> read = rewire::c_api::OpenOptionsOf(options);
    if (!read) return Forward(read);
    const Result<rewire::Executable> executable = rewire::Executable::Open(path, *read);
    if (!executable) return Forward(executable);
    rewire::c_api::Give(*executable, out);
    return {};
  });
}

RewireStatus rewire_executable_open_memory(const void* data, size_t size, void (*release)(void* context),
                                           void* context, const RewireOpenOptions* options,
                                           RewireExecutable** out) {
  return Boundary([&]() -> Status {
    std::shared_ptr<const void> owner = Owner(data, release, context);
    if (Status ok = Require("data,out", data, out); !ok) return ok;
    const Result<rewire::OpenOptions> read = rewire::c_api::OpenOptionsOf(options);
    if (!read) return Forward(read);
    const Result<rewire::Executable> executable =
        rewire::Executable::FromBytes({{static_cast<const std::byte*>(data), size}, std::move(owner)}, *read);
    if (!executable) return Forward(executable);
    rewire::c_api::Give(*executable, out);
    return {};
  });
}

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
    std::vector<std::string> names;
    for (const Function& candidate : executable->executable.module().functions)
      names.push_back(candidate.name);
    return Fail(StatusCode::kNotFound, "the executable has no function named \"{}\"{}", name,
                rewire::DidYouMean(name, names));
  });
}

RewireStatus rewire_executable_input(const RewireExecutable* executable, uint32_t function, uint32_t index,
                                     const char** name, uint32_t* node_count) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    const std::vector<rewire::NamedType>& inputs = (*found)->inputs;
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
    const std::vector<rewire::NamedType>& inputs = (*found)->inputs;
    if (index >= inputs.size()) return OutOfRange("input", index, inputs.size());
    const std::vector<TypeNode>& nodes = inputs[index].type.nodes;
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
    const std::vector<TypeNode>& nodes = (*found)->result.nodes;
    if (node >= nodes.size()) return OutOfRange("type node", node, nodes.size());
    return FillNode(nodes[node], type);
  });
}

RewireStatus rewire_executable_output(const RewireExecutable* executable, uint32_t function, uint32_t leaf,
                                      const char** name, RewireTypeNode* type) {
  return Boundary([&]() -> Status {
    const Result<const Function*> found = FunctionAt(executable, function);
    if (!found) return Forward(found);
    const std::vector<std::string>& names = (*found)->output_names;
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
    const std::vector<rewire::KernelImport>& kernels = executable->executable.module().kernels;
    if (index >= kernels.size()) return OutOfRange("kernel", index, kernels.size());
    *name = kernels[index].name.c_str();
    if (debug_name != nullptr) *debug_name = kernels[index].debug_name.c_str();
    return {};
  });
}

RewireStatus rewire_executable_device(const RewireExecutable* executable, uint32_t index, DLDevice* device,
                                      const char** memory_scope) {
  return Boundary(Given("executable,device", executable, device), [&]() -> Status {
    const std::vector<rewire::DeviceEntry>& devices = executable->executable.module().devices;
    if (index >= devices.size()) return OutOfRange("device", index, devices.size());
    *device = {static_cast<DLDeviceType>(devices[index].type), devices[index].id};
    if (memory_scope != nullptr) *memory_scope = devices[index].memory_scope.c_str();
    return {};
  });
}

RewireStatus rewire_executable_symbol(const RewireExecutable* executable, uint32_t index, const char** name) {
  return Boundary(Given("executable,name", executable, name), [&]() -> Status {
    const std::vector<std::string>& symbols = executable->executable.module().symbols;
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
    return rewire::c_api::WriteText(InstructionText(executable->executable.module(), **found, pc), buffer,
                                    capacity, length);
  });
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewire/base/array.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire::verify {

Status CheckTensorType(const Message& what, const Module& module, const TypeNode& node,
                       const FormatLimits& limits) {
  if (node.dtype != kUnknownDType && !IsValidDType(node.dtype)) {
    return Violation("{} has a dtype of code {}, {} bits and {} lanes", what, node.dtype.code,
                     node.dtype.bits, node.dtype.lanes);
  }
  const std::size_t rank = node.rank == kUnknownRank ? 0 : static_cast<std::size_t>(node.rank);
  if (node.rank < kUnknownRank || node.dims.size() != rank) {
    return Violation("{} has rank {} and {} dimensions", what, node.rank, node.dims.size());
  }
  if (Status status = CheckLimit({"rank of {}", what}, rank, limits.rank); !status) return status;
  for (Dim dim : node.dims) {
    if (!IsSymbol(dim)) continue;
    const std::int64_t symbol = SymbolDim(0) - dim;  // wider than SymbolOf, which keeps the low 32 bits
    if (symbol >= static_cast<std::int64_t>(module.symbols.size())) {
      return Violation("{} names symbol {}, there are {}", what, symbol, module.symbols.size());
    }
  }
  if (node.device != kAnyDevice && node.device >= module.devices.size()) {
    return Violation("{} names device {}, there are {}", what, node.device, module.devices.size());
  }
  return {};
}

Status CheckType(const Message& what, const Module& module, const Type& type, const FormatLimits& limits) {
  Array<std::uint32_t> open;  // fields still to come, for every ADT around the current node
  std::uint64_t leaves = 0;
  bool complete = false;
  for (const TypeNode& node : type.nodes) {
    if (complete) return Violation("{} has nodes after its tree", what);
    if (node.kind == TypeKind::kTensor) {
      if (Status status = CheckTensorType(what, module, node, limits); !status) return status;
    }
    if (node.kind == TypeKind::kValue && node.device >= module.devices.size()) {
      return Violation("{} names device {}, there are {}", what, node.device, module.devices.size());
    }
    if (node.kind == TypeKind::kAdt) {
      open.push_back(node.field_count);
      if (Status status = CheckLimit({"depth of {}", what}, open.size(), limits.type_depth); !status)
        return status;
    } else {
      ++leaves;
      if (!open.empty()) --open.back();
    }
    while (!open.empty() && open.back() == 0) {
      open.pop_back();
      if (!open.empty()) --open.back();
    }
    complete = open.empty();
  }
  if (!complete) return Violation("{} is a tree with nodes missing", what);
  return CheckLimit({"leaves of {}", what}, leaves, limits.result_leaves);
}

namespace {

Status CheckSignature(const Module& module, const Function& function, const FormatLimits& limits) {
  const Message of_function{"of '{}'", function.name};
  Array<std::string_view> names;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const NamedType& input = function.inputs[i];
    const Message what{"input {} {}", i, of_function};
    if (Status status = CheckName(what, input.name, limits); !status) return status;
    if (Status status = CheckType(what, module, input.type, limits); !status) return status;
    names.emplace_back(input.name);
  }
  if (const std::string_view twice = FindTwice(&names); !twice.empty()) {
    return Violation("two inputs {} have the name '{}'", of_function, twice);
  }
  if (Status status = CheckType({"the result {}", of_function}, module, function.result, limits); !status) {
    return status;
  }
  const std::size_t leaves = Leaves(function.result).size();
  if (function.output_names.size() != leaves) {
    return Violation("'{}' names {} outputs, its result {} has {}", function.name,
                     function.output_names.size(), TypeText(function.result, module.symbols), leaves);
  }
  names.assign(function.output_names.begin(), function.output_names.end());
  for (std::size_t i = 0; i < leaves; ++i) {
    const std::string& name = function.output_names[i];
    if (Status status = CheckName({"output {} {}", i, of_function}, name, limits); !status) return status;
  }
  if (const std::string_view twice = FindTwice(&names); !twice.empty()) {
    return Violation("two outputs {} have the name '{}'", of_function, twice);
  }
  if (Status status = CheckLimit({"registers {}", of_function}, function.register_count, limits.registers);
      !status) {
    return status;
  }
  if (function.inputs.size() > function.register_count) {
    return Violation("'{}' has {} registers for {} inputs", function.name, function.register_count,
                     function.inputs.size());
  }
  return {};
}

// The fields of `__init`'s result are the computed constants, in their order and of their types.
Status CheckInitSignature(const Module& module, const Function* init) {
  Array<std::size_t> computed;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind == ConstantKind::kComputed) computed.push_back(i);
  }
  if (init == nullptr) {
    if (computed.empty()) return {};
    return Violation("constant {} ('{}') is computed, and there is no function '__init'", computed[0],
                     module.constants[computed[0]].name);
  }
  if (!init->inputs.empty()) {
    return Violation("'__init' has {} inputs, it takes none", init->inputs.size());
  }
  const Array<TypeNode>& nodes = init->result.nodes;
  if (nodes[0].kind != TypeKind::kAdt || nodes[0].field_count != computed.size() ||
      nodes.size() != 1 + computed.size()) {
    return Violation("'__init' returns {}, expected an ADT of {} tensors, one for each computed constant",
                     TypeText(init->result, module.symbols), computed.size());
  }
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const Constant& constant = module.constants[computed[i]];
    if (nodes[1 + i] == constant.type) continue;
    return Violation("field {} of the result of '__init' is {}, constant {} ('{}') is {}", i,
                     TypeText(Type{{nodes[1 + i]}}, module.symbols), computed[i], constant.name,
                     TypeText(Type{{constant.type}}, module.symbols));
  }
  return {};
}

}  // namespace

Status CheckSignatures(const Module& module, const FormatLimits& limits) {
  Array<std::string_view> names;
  const Function* init = nullptr;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    if (Status status = CheckName({"function {}", i}, function.name, limits); !status) return status;
    names.emplace_back(function.name);
    if (Status status = CheckSignature(module, function, limits); !status) return status;
    if (function.name == kInitFunction) init = &function;
  }
  if (const std::string_view twice = FindTwice(&names); !twice.empty()) {
    return Violation("two functions have the name '{}'", twice);
  }
  return CheckInitSignature(module, init);
}

}  // namespace rewire::verify

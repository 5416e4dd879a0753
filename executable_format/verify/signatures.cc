// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "executable_format/verify/context.h"

namespace rewire::verify {

Status CheckTensorType(const std::string& what, const Module& module, const TypeNode& node,
                       const FormatLimits& limits) {
  if (node.dtype != kUnknownDType && !IsValidDType(node.dtype)) {
    return Violation({what, " has a dtype of code ", node.dtype.code, ", ", node.dtype.bits, " bits and ",
                      node.dtype.lanes, " lanes"});
  }
  const std::size_t rank = node.rank == kUnknownRank ? 0 : static_cast<std::size_t>(node.rank);
  if (node.rank < kUnknownRank || node.dims.size() != rank) {
    return Violation({what, " has rank ", node.rank, " and ", node.dims.size(), " dimensions"});
  }
  if (Status status = CheckLimit(Concat({"rank of ", what}), rank, limits.rank); !status) return status;
  for (Dim dim : node.dims) {
    if (!IsSymbol(dim)) continue;
    const std::int64_t symbol = SymbolDim(0) - dim;  // wider than SymbolOf, which keeps the low 32 bits
    if (symbol >= static_cast<std::int64_t>(module.symbols.size())) {
      return Violation({what, " names symbol ", symbol, ", there are ", module.symbols.size()});
    }
  }
  if (node.device != kAnyDevice && node.device >= module.devices.size()) {
    return Violation({what, " names device ", node.device, ", there are ", module.devices.size()});
  }
  return {};
}

Status CheckType(const std::string& what, const Module& module, const Type& type,
                 const FormatLimits& limits) {
  std::vector<std::uint32_t> open;  // fields still to come, for every ADT around the current node
  std::uint64_t leaves = 0;
  bool complete = false;
  for (const TypeNode& node : type.nodes) {
    if (complete) return Violation({what, " has nodes after its tree"});
    if (node.kind == TypeKind::kTensor) {
      if (Status status = CheckTensorType(what, module, node, limits); !status) return status;
    }
    if (node.kind == TypeKind::kAdt) {
      open.push_back(node.field_count);
      if (Status status = CheckLimit(Concat({"depth of ", what}), open.size(), limits.type_depth); !status)
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
  if (!complete) return Violation({what, " is a tree with nodes missing"});
  return CheckLimit(Concat({"leaves of ", what}), leaves, limits.result_leaves);
}

namespace {

Status CheckSignature(const Module& module, const Function& function, const FormatLimits& limits) {
  const std::string of_function = Concat({"of '", function.name, "'"});
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const NamedType& input = function.inputs[i];
    const std::string what = Concat({"input ", i, " ", of_function});
    if (Status status = CheckName(what, input.name, limits); !status) return status;
    if (!seen.insert(input.name).second) {
      return Violation({"two inputs ", of_function, " have the name '", input.name, "'"});
    }
    if (Status status = CheckType(what, module, input.type, limits); !status) return status;
  }
  if (Status status = CheckType(Concat({"the result ", of_function}), module, function.result, limits);
      !status) {
    return status;
  }
  const std::size_t leaves = Leaves(function.result).size();
  if (function.output_names.size() != leaves) {
    return Violation({"'", function.name, "' names ", function.output_names.size(), " outputs, its result ",
                      TypeText(function.result, module.symbols), " has ", leaves});
  }
  seen.clear();
  for (std::size_t i = 0; i < leaves; ++i) {
    const std::string& name = function.output_names[i];
    if (Status status = CheckName(Concat({"output ", i, " ", of_function}), name, limits); !status)
      return status;
    if (!seen.insert(name).second) {
      return Violation({"two outputs ", of_function, " have the name '", name, "'"});
    }
  }
  if (Status status =
          CheckLimit(Concat({"registers ", of_function}), function.register_count, limits.registers);
      !status) {
    return status;
  }
  if (function.inputs.size() > function.register_count) {
    return Violation({"'", function.name, "' has ", function.register_count, " registers for ",
                      function.inputs.size(), " inputs"});
  }
  return {};
}

// The fields of `__init`'s result are the computed constants, in their order and of their types.
Status CheckInitSignature(const Module& module, const Function* init) {
  std::vector<std::size_t> computed;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind == ConstantKind::kComputed) computed.push_back(i);
  }
  if (init == nullptr) {
    if (computed.empty()) return {};
    return Violation({"constant ", computed[0], " ('", module.constants[computed[0]].name,
                      "') is computed, and there is no function '__init'"});
  }
  if (!init->inputs.empty()) {
    return Violation({"'__init' has ", init->inputs.size(), " inputs, it takes none"});
  }
  const std::vector<TypeNode>& nodes = init->result.nodes;
  if (nodes[0].kind != TypeKind::kAdt || nodes[0].field_count != computed.size() ||
      nodes.size() != 1 + computed.size()) {
    return Violation({"'__init' returns ", TypeText(init->result, module.symbols), ", expected an ADT of ",
                      computed.size(), " tensors, one for each computed constant"});
  }
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const Constant& constant = module.constants[computed[i]];
    if (nodes[1 + i] == constant.type) continue;
    return Violation({"field ", i, " of the result of '__init' is ",
                      TypeText(Type{{nodes[1 + i]}}, module.symbols), ", constant ", computed[i], " ('",
                      constant.name, "') is ", TypeText(Type{{constant.type}}, module.symbols)});
  }
  return {};
}

}  // namespace

Status CheckSignatures(const Module& module, const FormatLimits& limits) {
  std::unordered_set<std::string_view> seen;
  const Function* init = nullptr;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    if (Status status = CheckName(Concat({"function ", i}), function.name, limits); !status) return status;
    if (!seen.insert(function.name).second) {
      return Violation({"two functions have the name '", function.name, "'"});
    }
    if (Status status = CheckSignature(module, function, limits); !status) return status;
    if (function.name == kInitFunction) init = &function;
  }
  return CheckInitSignature(module, init);
}

}  // namespace rewire::verify

// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/emit.h"

#include <set>

#include "rewire/compiler/emit/function_emitter.h"

namespace rewire::compiler {
namespace {

// How a signature says it. What is computed from symbols, and symbols that the compiler made, are unknown
// to a caller.
rewire::Type SignatureType(const Type& type, ModuleTables* tables, const std::set<std::string>& named) {
  if (!type.IsTensor()) return SimpleType(rewire::TypeKind::kValue);
  if (!type.ranked) return UnrankedTensorType(type.dtype);
  std::vector<Dim> dims;
  for (const DimExpr& dim : type.dims) {
    const std::optional<std::string> symbol = dim.symbol();
    if (dim.IsConstant()) {
      dims.push_back(*dim.constant());
    } else if (symbol && named.contains(*symbol)) {
      dims.push_back(SymbolDim(tables->Symbol(*symbol)));
    } else {
      dims.push_back(kUnknownDim);
    }
  }
  return TensorType(type.dtype, dims);
}

std::set<std::string> NamedSymbols(const Graph& graph) {
  std::set<std::string> names;
  for (const Value* parameter : graph.main.parameters) {
    for (const DimExpr& dim : parameter->type.dims) {
      const std::optional<std::string> symbol = dim.symbol();
      if (symbol && symbol->front() != '$') names.insert(*symbol);
    }
  }
  return names;
}

// The function that fills the computed constants of the tables.
Result<Function> EmitInit(const Graph& graph, ModuleTables* tables) {
  Graph once;
  once.main.nodes = graph.init.nodes;
  std::vector<rewire::Type> results;
  for (const Value* value : tables->computed()) {
    once.main.results.push_back(const_cast<Value*>(value));
    results.push_back(SignatureType(value->type, tables, {}));
  }
  Function function;
  function.name = kInitFunction;
  function.result = AdtType(0, results);
  // Leaves have names; nobody asks for these.
  for (std::size_t i = 0; i < results.size(); ++i)
    function.output_names.push_back("output" + std::to_string(i));
  FunctionEmitter emitter(once, tables);
  if (Status emitted = emitter.Emit(&function, true); !emitted) return Forward(emitted, kInitFunction);
  return function;
}

}  // namespace

Result<Module> EmitModule(const Graph& graph, EmitStatistics* statistics) {
  Module module;
  ModuleTables tables(&module);
  for (const Graph::Parameter& parameter : graph.parameters) tables.Reserve(parameter.value->name);
  const std::set<std::string> named = NamedSymbols(graph);
  Function function;
  function.name = "main";
  for (std::size_t i = 0; i < graph.main.parameters.size(); ++i) {
    function.inputs.push_back(
        {graph.input_names[i], SignatureType(graph.main.parameters[i]->type, &tables, named)});
  }
  std::vector<rewire::Type> results;
  for (const Value* result : graph.main.results) {
    results.push_back(SignatureType(result->type, &tables, named));
  }
  function.result = results.size() == 1 ? results[0] : AdtType(0, results);
  function.output_names = graph.output_names;
  FunctionEmitter emitter(graph, &tables);
  if (Status emitted = emitter.Emit(&function); !emitted) return Forward(emitted);
  module.functions.push_back(std::move(function));
  if (!tables.computed().empty()) {
    Result<Function> init = EmitInit(graph, &tables);
    if (!init) return Forward(init);
    module.functions.push_back(*std::move(init));
  }
  if (statistics != nullptr) {
    statistics->kernel_calls = emitter.kernel_calls();
    statistics->values = emitter.values();
    for (const Constant& constant : module.constants) statistics->constant_bytes += constant.raw_bytes;
  }
  return module;
}

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/executable_format/bad_modules.h"

namespace rewire::test {
namespace {

TypeNode& InputNode(Module& m) { return m.functions[0].inputs[0].type.nodes[0]; }

// Adds a computed constant "c" and an `__init` that returns `result`.
void AddInit(Module& m, Type result) {
  Constant computed;
  computed.kind = ConstantKind::kComputed;
  computed.name = "c";
  computed.type = TensorType(kFloat32, {4}).nodes[0];
  computed.raw_bytes = 16;
  m.constants.push_back(computed);
  CodeWriter code;
  code.LoadConst(0, 0);
  code.AllocADT(0, 1, {0});
  code.Ret(1);
  Function init;
  init.name = kInitFunction;
  init.result = std::move(result);
  for (std::size_t i = 0; i < Leaves(init.result).size(); ++i)
    init.output_names.push_back("c" + std::to_string(i));
  init.register_count = 2;
  init.code = *code.Finish();
  m.functions.push_back(init);
}

std::vector<BadModule> BadTypes() {
  std::vector<BadModule> bad = {
      Changed(
          "type.dtype",
          [](Module& m) {
            InputNode(m).dtype = {9, 32, 1};
          },
          "input 0 of 'main' has a dtype of code 9, 32 bits and 1 lanes"),
      Changed(
          "type.rank", [](Module& m) { InputNode(m).rank = 2; },
          "input 0 of 'main' has rank 2 and 1 dimensions"),
      Changed(
          "limit.rank",
          [](Module& m) {
            m.functions[0].inputs[0].type = TensorType(kFloat32, {1, 2, 3});
          },
          "rank of input 0 of 'main': 3, the limit is 2", Limit(&FormatLimits::rank, 2)),
      Changed(
          "type.symbol", [](Module& m) { InputNode(m).dims[0] = SymbolDim(0); },
          "input 0 of 'main' names symbol 0, there are 0"),
      Changed(
          "type.symbol/wide",
          [](Module& m) {
            m.symbols = {"N"};
            InputNode(m).dims[0] = SymbolDim(0) - (1LL << 32);
          },
          "input 0 of 'main' names symbol 4294967296, there are 1"),
      Changed(
          "type.device", [](Module& m) { InputNode(m).device = 1; },
          "input 0 of 'main' names device 1, there are 1"),
      Changed(
          "type.tree/more", [](Module& m) { m.functions[0].result.nodes.resize(2); },
          "the result of 'main' has nodes after its tree"),
      Changed(
          "type.tree/fewer", [](Module& m) { m.functions[0].result.nodes.clear(); },
          "the result of 'main' is a tree with nodes missing"),
      Changed(
          "type.tree/field",
          [](Module& m) {
            m.functions[0].result = AdtType(0, {SimpleType(TypeKind::kValue)});
            m.functions[0].result.nodes[0].field_count = 2;
          },
          "the result of 'main' is a tree with nodes missing"),
      Changed(
          "limit.type_depth",
          [](Module& m) { m.functions[0].result = AdtType(0, {AdtType(0, {AdtType(0, {})})}); },
          "depth of the result of 'main': 3, the limit is 2", Limit(&FormatLimits::type_depth, 2)),
      Changed(
          "limit.result_leaves",
          [](Module& m) {
            const Type leaf = SimpleType(TypeKind::kValue);
            m.functions[0].result = AdtType(0, {leaf, leaf, leaf});
          },
          "leaves of the result of 'main': 3, the limit is 2", Limit(&FormatLimits::result_leaves, 2)),
  };
  bad[1].in_memory_only = true;
  return bad;
}

std::vector<BadModule> BadInits() {
  const Type vector = TensorType(kFloat32, {4});
  return {
      Changed(
          "init.missing",
          [&](Module& m) {
            AddInit(m, AdtType(0, {vector}));
            m.functions.pop_back();
          },
          "constant 1 ('c') is computed, and there is no function '__init'"),
      Changed(
          "init.inputs",
          [&](Module& m) {
            AddInit(m, AdtType(0, {vector}));
            m.functions[2].inputs = {{"x", vector}};
          },
          "'__init' has 1 inputs, it takes none"),
      Changed(
          "init.result/tensor", [&](Module& m) { AddInit(m, vector); },
          "'__init' returns f32[4], expected an ADT of 1 tensors, one for each computed constant"),
      Changed(
          "init.result/count",
          [&](Module& m) {
            AddInit(m, AdtType(0, {vector, vector}));
          },
          "'__init' returns (f32[4], f32[4]), expected an ADT of 1 tensors, one for each computed constant"),
      Changed(
          "init.result/nested", [&](Module& m) { AddInit(m, AdtType(0, {AdtType(0, {vector})})); },
          "'__init' returns ((f32[4])), expected an ADT of 1 tensors, one for each computed constant"),
      Changed(
          "init.field", [&](Module& m) { AddInit(m, AdtType(0, {TensorType(kFloat32, {5})})); },
          "field 0 of the result of '__init' is f32[5], constant 1 ('c') is f32[4]"),
  };
}

}  // namespace

std::vector<BadModule> BadSignatures() {
  std::vector<BadModule> bad = {
      Changed(
          "function.name", [](Module& m) { m.functions[1].name = "main"; },
          "two functions have the name 'main'"),
      Changed(
          "function.name/empty", [](Module& m) { m.functions[1].name = ""; }, "function 1 has an empty name"),
      Changed(
          "input.name", [](Module& m) { m.functions[1].inputs[1].name = "a"; },
          "two inputs of 'helper' have the name 'a'"),
      Changed(
          "input.name/empty", [](Module& m) { m.functions[0].inputs[0].name = ""; },
          "input 0 of 'main' has an empty name"),
      Changed(
          "output.count", [](Module& m) { m.functions[0].output_names.clear(); },
          "'main' names 0 outputs, its result f32[4] has 1"),
      Changed(
          "output.name",
          [](Module& m) {
            const Type leaf = SimpleType(TypeKind::kValue);
            m.functions[0].result = AdtType(0, {leaf, leaf});
            m.functions[0].output_names = {"y", "y"};
          },
          "two outputs of 'main' have the name 'y'"),
      Changed(
          "output.name/empty", [](Module& m) { m.functions[0].output_names[0] = ""; },
          "output 0 of 'main' has an empty name"),
      Changed(
          "limit.registers", [](Module&) {}, "registers of 'main': 8, the limit is 7",
          Limit(&FormatLimits::registers, 7)),
      Changed(
          "function.registers", [](Module& m) { m.functions[1].register_count = 1; },
          "'helper' has 1 registers for 2 inputs"),
  };
  for (BadModule& more : BadTypes()) bad.push_back(std::move(more));
  for (BadModule& more : BadInits()) bad.push_back(std::move(more));
  return bad;
}

}  // namespace rewire::test

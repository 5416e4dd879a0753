// SPDX-License-Identifier: Apache-2.0
// Changes to what functions take and return, and programs put together from two.
#include <algorithm>
#include <set>
#include <utility>

#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {
namespace {

TypeNode AnyNode(Dice& dice) {
  TypeNode node;
  node.kind = dice.OneIn(2) ? static_cast<std::uint8_t>(kTensor) : static_cast<std::uint8_t>(dice.Below(6));
  if (node.kind == kAdt) {
    node.words = {static_cast<std::uint32_t>(dice.Below(3)), static_cast<std::uint32_t>(dice.Below(3)), 0};
  } else if (node.kind == kTensor) {
    const std::uint64_t rank = dice.Below(4);
    for (std::uint64_t i = 0; i < rank; ++i)
      node.dims.push_back(static_cast<std::int64_t>(dice.Below(6)) - 2);
    node.words = {dice.OneIn(6) ? 0 : AnyDType(dice), static_cast<std::uint32_t>(rank),
                  dice.OneIn(8) ? 0xFFFFFFFFu : 0};
  }
  return node;
}

std::string ChangeType(Type& type, Dice& dice) {
  if (type.empty()) {
    type.push_back(AnyNode(dice));
    return "type added";
  }
  TypeNode& node = dice.Pick(type);
  switch (dice.Below(8)) {
    case 0:
      node = AnyNode(dice);
      return "type changed";
    case 1:
      type.pop_back();
      return "type cut";
    case 2:
      node.words[dice.Below(3)] = static_cast<std::uint32_t>(dice.Interesting());
      return "a type's word changed";
    case 3:
      node.words[0] = node.kind == kTensor ? AnyDType(dice) : node.words[0] + 1;
      return "a type's dtype or tag changed";
    case 4: {
      // As the only field of an ADT.
      TypeNode adt;
      adt.kind = kAdt;
      adt.words = {0, 1, 0};
      type.insert(type.begin(), adt);
      return "type made a field";
    }
    case 5:
      type.assign(1, TypeNode{});
      return "type opened";
    default:
      if (node.kind != kTensor) return "";
      ChangeDims(node.dims, dice);
      if (!dice.OneIn(8)) node.words[1] = static_cast<std::uint32_t>(node.dims.size());
      if (dice.OneIn(3) && !node.dims.empty())
        dice.Pick(node.dims) = -1 - static_cast<std::int64_t>(dice.Below(3));
      return "a type's dimensions changed";
  }
}

std::size_t LeafCount(const Type& type) {
  return static_cast<std::size_t>(
      std::count_if(type.begin(), type.end(), [](const TypeNode& node) { return node.kind != kAdt; }));
}

// A name that `used` does not have yet.
std::string Unused(const std::string& name, std::set<std::string>& used) {
  std::string unused = name;
  while (!used.insert(unused).second) unused += "_2";
  return unused;
}

struct Shifts {
  std::int64_t constants, functions, kernels, devices, strings, symbols;
};

void Shift(Type& type, const Shifts& by) {
  for (TypeNode& node : type) {
    if (node.kind != kTensor) continue;
    if (node.words[2] != 0 && node.words[2] != 0xFFFFFFFFu)
      node.words[2] += static_cast<std::uint32_t>(by.devices);
    for (std::int64_t& dim : node.dims) {
      if (dim <= -2) dim = Plus(dim, -by.symbols);
    }
  }
}

void Shift(Instruction& instruction, const Shifts& by) {
  for (Operand& operand : instruction.operands) {
    const bool none = operand.value == 0xFFFFFFFFu;
    if (operand.kind == 'c') operand.value = Plus(operand.value, by.constants);
    if (operand.kind == 'f') operand.value = Plus(operand.value, by.functions);
    if (operand.kind == 'p') operand.value = Plus(operand.value, by.kernels);
    if (operand.kind == 'e' && operand.value != 0) operand.value = Plus(operand.value, by.devices);
    if (operand.kind == 's' && !none) operand.value = Plus(operand.value, by.strings);
  }
}

}  // namespace

std::string ChangeSignatures(Program& program, Dice& dice) {
  if (program.functions.empty()) return "";
  Function& function = dice.Pick(program.functions);
  switch (dice.Below(10)) {
    case 0:
      function.inputs.emplace_back("added" + std::to_string(dice.Below(4)), Type{AnyNode(dice)});
      function.registers = std::max(function.registers, static_cast<std::uint32_t>(function.inputs.size()));
      return "input added";
    case 1:
      if (function.inputs.empty()) return "";
      function.inputs.pop_back();
      return "input removed";
    case 2:
      function.registers =
          static_cast<std::uint32_t>(dice.OneIn(2) ? function.registers + 3 : dice.Interesting());
      return "count of registers changed";
    case 3:
      std::swap(function.name, dice.Pick(program.functions).name);
      return "functions' names swapped";
    case 4:
      std::swap(function, dice.Pick(program.functions));
      return "functions swapped";
    case 5:
      function.outputs.resize(dice.Below(4), "more");
      return "outputs' names changed";
    case 6:
    case 7:
    case 8: {
      if (function.inputs.empty()) return "";
      return "input: " + ChangeType(dice.Pick(function.inputs).second, dice);
    }
    default: {
      const std::string what = ChangeType(function.result, dice);
      if (!dice.OneIn(8)) {
        while (function.outputs.size() > LeafCount(function.result)) function.outputs.pop_back();
        while (function.outputs.size() < LeafCount(function.result))
          function.outputs.push_back("more" + std::to_string(function.outputs.size()));
      }
      return "result: " + what;
    }
  }
}

std::string Splice(Program& program, const Program& other, Dice& dice) {
  if (&program == &other) return "";
  const auto size = [](const auto& table) { return static_cast<std::int64_t>(table.size()); };
  // Device 0 is the host in both.
  const Shifts by = {size(program.constants),   size(program.functions), size(program.kernels),
                     size(program.devices) - 1, size(program.strings),   size(program.symbols)};
  std::set<std::string> constants, functions, symbols;
  for (const Constant& constant : program.constants) constants.insert(constant.name);
  for (const Function& function : program.functions) functions.insert(function.name);
  for (const std::string& symbol : program.symbols) symbols.insert(symbol);
  for (Constant constant : other.constants) {
    if (!constant.name.empty()) constant.name = Unused(constant.name, constants);
    program.constants.push_back(std::move(constant));
  }
  for (const std::string& symbol : other.symbols) program.symbols.push_back(Unused(symbol, symbols));
  if (!program.symbol_limits.empty() || !other.symbol_limits.empty()) {
    program.symbol_limits.resize(static_cast<std::size_t>(by.symbols), -1);
    program.symbol_limits.insert(program.symbol_limits.end(), other.symbol_limits.begin(),
                                 other.symbol_limits.end());
    program.symbol_limits.resize(program.symbols.size(), -1);
  }
  program.strings.insert(program.strings.end(), other.strings.begin(), other.strings.end());
  program.kernels.insert(program.kernels.end(), other.kernels.begin(), other.kernels.end());
  for (std::size_t i = 1; i < other.devices.size(); ++i) program.devices.push_back(other.devices[i]);
  for (Function function : other.functions) {
    function.name = Unused(function.name, functions);
    for (auto& input : function.inputs) Shift(input.second, by);
    Shift(function.result, by);
    for (Instruction& instruction : function.code) Shift(instruction, by);
    program.functions.push_back(std::move(function));
  }
  // Some call leads into the other half.
  std::vector<Operand*> callees;
  for (std::size_t i = 0; i < static_cast<std::size_t>(by.functions); ++i) {
    for (Instruction& instruction : program.functions[i].code) {
      if (instruction.op == kInvoke || instruction.op == kInvokePacked)
        callees.push_back(&instruction.operands[0]);
    }
  }
  if (!callees.empty()) {
    Operand& callee = *dice.Pick(callees);
    const bool kernel = callee.kind == 'p';
    const auto count = static_cast<std::uint64_t>(kernel ? size(other.kernels) : size(other.functions));
    if (count > 0)
      callee.value = (kernel ? by.kernels : by.functions) + static_cast<std::int64_t>(dice.Below(count));
  }
  return "spliced";
}

}  // namespace rewire::hostile

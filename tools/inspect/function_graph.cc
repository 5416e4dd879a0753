// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/function_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/inspect/listing.h"

namespace rewire::tools {
namespace {

// The node that may have made the value of a register last, and the value's type as text. A size is what the
// memory of a register depends on.
struct Definition {
  std::size_t node;
  bool is_size;
  std::string type;
  bool operator<(const Definition& other) const {
    return std::tie(node, is_size, type) < std::tie(other.node, other.is_size, other.type);
  }
};
using Definitions = std::set<Definition>;
using State = std::map<std::uint32_t, Definitions>;  // by register

bool Merge(const State& from, State* into) {
  bool changed = false;
  for (const auto& [reg, definitions] : from) {
    Definitions& known = (*into)[reg];
    for (const Definition& definition : definitions) changed |= known.insert(definition).second;
  }
  return changed;
}

constexpr std::uint32_t kMostOperands = 16;

class Builder {
 public:
  Builder(const Module& module, std::uint32_t index)
      : module_(module), printer_(module), function_(module.functions[index]) {
    graph_.function = index;
    graph_.name = function_.name;
  }

  FunctionGraph Build() {
    State& entry = arriving_[0];
    for (std::uint32_t i = 0; i < function_.inputs.size(); ++i) {
      const NamedType& input = function_.inputs[i];
      std::string type = TypeText(input.type, module_.symbols);
      entry[i].insert({graph_.nodes.size(), false, type});
      graph_.nodes.push_back({GraphNode::Kind::kInput, 0, input.name, {std::move(type)}, ""});
    }
    for (std::uint32_t pc = 0; pc < function_.code.size(); pc += WordsOf(function_.code[pc])) AddNode(pc);
    // Values flow along jumps, too, and backwards in a loop: again until nothing new arrives anywhere.
    for (bool changed = true; changed;) changed = Pass();
    AddControl();
    for (const auto& [ends, label] : edges_) {
      const auto& [from, to, kind] = ends;
      graph_.edges.push_back({from, to, kind, label});
    }
    return std::move(graph_);
  }

 private:
  void AddNode(std::uint32_t pc) {
    const std::uint32_t* instruction = function_.code.data() + pc;
    const Opcode opcode = OpcodeOf(*instruction);
    GraphNode node;
    node.pc = pc;
    node.source = SourceTextAt(function_, pc);
    switch (opcode) {
      case Opcode::kKillRegister:
      case Opcode::kGoto:
      case Opcode::kMove:
      case Opcode::kAllocStorage:
      case Opcode::kAllocTensor:
      case Opcode::kAllocTensorReg:
      case Opcode::kLoadConsti:
        return;
      case Opcode::kLoadConst: {
        const Constant& constant = module_.constants[instruction[1]];
        node.kind = constant.kind == ConstantKind::kParameter ? GraphNode::Kind::kParameter
                                                              : GraphNode::Kind::kConstant;
        node.title = printer_.ConstantText(instruction[1]);
        node.lines.push_back(NodeText(constant.type, module_));
        break;
      }
      case Opcode::kInvokePacked:
        node.kind = GraphNode::Kind::kKernel;
        node.title = module_.kernels[instruction[1]].name;
        node.lines.push_back(printer_.Text(function_, pc, kMostOperands));
        break;
      default:
        node.title = std::string(Info(opcode).mnemonic);
        if (opcode == Opcode::kInvoke) {
          node.callee = instruction[1];
          node.title += " " + printer_.FunctionText(instruction[1]);
        }
        node.lines.push_back(printer_.Text(function_, pc, kMostOperands));
    }
    node_at_[pc] = graph_.nodes.size();
    graph_.nodes.push_back(std::move(node));
  }

  // One walk over the code in its order. Returns true if something new arrived at a jump's target.
  bool Pass() {
    bool changed = false;
    bool falls = false;  // the instruction before goes on to this one
    State state;
    for (std::uint32_t pc = 0; pc < function_.code.size(); pc += WordsOf(function_.code[pc])) {
      if (const auto arriving = arriving_.find(pc); arriving != arriving_.end()) {
        if (!falls) state.clear();
        Merge(arriving->second, &state);
      } else if (!falls) {
        continue;  // nothing is known to come here
      }
      const std::uint32_t* instruction = function_.code.data() + pc;
      Step(instruction, pc, &state);
      ForEachTarget(instruction, pc, [&](std::uint32_t target) {
        changed |= arriving_.find(target) == arriving_.end();
        changed |= Merge(state, &arriving_[target]);
      });
      const auto flow = Info(OpcodeOf(*instruction)).flow;
      falls = flow == Flow::kNext || flow == Flow::kCall;
    }
    return changed;
  }

  void Step(const std::uint32_t* instruction, std::uint32_t pc, State* state) {
    const auto place = node_at_.find(pc);
    const std::vector<Operand> operands = OperandsOf(instruction);
    Definitions passed;  // what an instruction that is no node hands on
    for (const Operand& operand : operands) {
      if (operand.use != RegisterUse::kRead) continue;
      for (const Definition& definition : (*state)[operand.reg]) {
        if (place == node_at_.end()) {
          passed.insert(definition);
        } else if (definition.is_size || !operand.is_output) {
          Connect(definition, place->second, operand.reg);
        }
      }
    }
    if (place == node_at_.end() && OpcodeOf(*instruction) != Opcode::kMove) {  // it takes memory
      Definitions sizes;
      for (const Definition& definition : passed) sizes.insert({definition.node, true, ""});
      passed = std::move(sizes);
    }
    for (const Operand& operand : operands) {
      if (operand.use == RegisterUse::kKill) {
        state->erase(operand.reg);
      } else if (operand.use == RegisterUse::kWrite) {
        types_[operand.reg] = ResultType(instruction);
        (*state)[operand.reg] =
            place == node_at_.end() ? passed : Definitions{{place->second, false, types_[operand.reg]}};
      } else if (operand.is_output) {
        (*state)[operand.reg] = {{place->second, false, types_[operand.reg]}};
      }
    }
  }

  void Connect(const Definition& from, std::size_t to, std::uint32_t reg) {
    const auto kind = from.is_size ? GraphEdge::Kind::kSize : GraphEdge::Kind::kValue;
    std::string label = RegisterText(function_, reg);
    if (!from.type.empty()) label += " " + from.type;
    edges_.emplace(std::tuple(from.node, to, kind), std::move(label));
  }

  // An If leads to the first node of each branch, if no value does.
  void AddControl() {
    for (const auto& [pc, node] : node_at_) {
      const std::uint32_t* instruction = function_.code.data() + pc;
      if (OpcodeOf(*instruction) != Opcode::kIf) continue;
      ForEachTarget(instruction, pc, [&, from = node](std::uint32_t target) {
        const auto first = node_at_.lower_bound(target);
        if (first != node_at_.end() && first->second != from)
          edges_.emplace(std::tuple(from, first->second, GraphEdge::Kind::kControl), "");
      });
    }
  }

  struct Operand {
    std::uint32_t reg;
    RegisterUse use;
    bool is_output;  // a kernel writes the tensor in it
  };
  std::vector<Operand> OperandsOf(const std::uint32_t* instruction) const {
    std::vector<Operand> operands;
    ForEachRegister(instruction, [&](std::uint32_t reg, RegisterUse use) {
      operands.push_back({reg, use, false});
    });
    if (OpcodeOf(*instruction) != Opcode::kInvokePacked) return operands;
    std::uint32_t outputs = 0, arguments = 0;
    ForEachOperand(instruction,
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     if (operand.kind == OperandKind::kImm32) outputs = *words;
                     if (operand.kind == OperandKind::kReads) arguments = count;
                   });
    const std::size_t first = operands.size() - arguments;  // a list stands last
    for (std::size_t i = arguments - std::min(outputs, arguments); i < arguments; ++i)
      operands[first + i].is_output = true;
    for (const std::uint32_t i : module_.kernels[instruction[1]].also_written) {
      if (i < arguments) operands[first + i].is_output = true;
    }
    return operands;
  }

  // As far as the instruction alone says it.
  std::string ResultType(const std::uint32_t* instruction) const {
    const Opcode opcode = OpcodeOf(*instruction);
    if (opcode == Opcode::kLoadConst) return NodeText(module_.constants[instruction[1]].type, module_);
    std::optional<DLDataType> dtype;
    std::optional<std::string> type;
    ForEachOperand(instruction,
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     if (operand.kind == OperandKind::kDType) dtype = DecodeDType(*words);
                     if (operand.kind != OperandKind::kDims || !dtype) return;
                     Array<Dim> dims;
                     for (std::uint32_t i = 0; i < count; ++i)
                       dims.push_back(DecodeInt64(words + 2 * std::size_t{i}));
                     type = TypeText(TensorType(*dtype, std::move(dims)), module_.symbols);
                   });
    return opcode == Opcode::kAllocTensor && type ? *type : "";
  }

  const Module& module_;
  const InstructionPrinter printer_;
  const Function& function_;
  FunctionGraph graph_;
  std::map<std::uint32_t, std::size_t> node_at_;  // by pc
  std::map<std::uint32_t, State> arriving_;       // by pc: what jumps bring
  std::map<std::uint32_t, std::string> types_;    // by register, as the walk goes
  std::map<std::tuple<std::size_t, std::size_t, GraphEdge::Kind>, std::string> edges_;
};

}  // namespace

FunctionGraph GraphOf(const Module& module, std::uint32_t function) {
  return Builder(module, function).Build();
}

}  // namespace rewire::tools

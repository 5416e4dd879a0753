// SPDX-License-Identifier: Apache-2.0
#include "tools/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executable_format/instruction.h"
#include "tools/register_text.h"

namespace rewire::tools {
namespace {

bool IsRegisterRead(OperandKind kind) {
  switch (kind) {
    case OperandKind::kRead:
    case OperandKind::kOptRead:
    case OperandKind::kKill:
    case OperandKind::kReads:
      return true;
    case OperandKind::kWrite:
    case OperandKind::kOptWrite:
    case OperandKind::kImm32:
    case OperandKind::kImm64:
    case OperandKind::kDType:
    case OperandKind::kConstant:
    case OperandKind::kFunction:
    case OperandKind::kKernel:
    case OperandKind::kDevice:
    case OperandKind::kString:
    case OperandKind::kTarget:
    case OperandKind::kDims:
      return false;
  }
  return false;
}

std::vector<std::uint32_t> RegistersRead(const std::uint32_t* instruction) {
  std::vector<std::uint32_t> registers;
  ForEachOperand(
      instruction, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
        if (!IsRegisterRead(operand.kind)) return;
        for (std::uint32_t i = 0; i < count; ++i) {
          const bool seen = std::find(registers.begin(), registers.end(), words[i]) != registers.end();
          if (words[i] != kNone && !seen) registers.push_back(words[i]);
        }
      });
  return registers;
}

}  // namespace

std::string TraceText(const TraceEntry& entry) {
  std::string operands;
  for (const TraceEntry::Operand& operand : entry.operands) {
    operands += (operands.empty() ? "  ; " : ", ") + operand.name + " " + operand.holds;
  }
  // Deep recursion would push the text off the page.
  const std::size_t indent = 2 * std::min<std::size_t>(entry.depth - 1, 20);
  std::string text =
      fmt::format("{:<20} {:{}}{}", fmt::format("{}@{}", entry.function, entry.pc), "", indent, entry.text);
  if (operands.empty()) return text;
  text.resize(std::max<std::size_t>(text.size(), 70), ' ');
  return text + operands;
}

void Tracer::OnInstruction(const Instruction& instruction) {
  if (module_ != &instruction.module) {
    module_ = &instruction.module;
    printer_ = std::make_unique<InstructionPrinter>(instruction.module);
  }
  const Function& function = instruction.module.functions[instruction.function];
  TraceEntry entry{instruction.module,
                   function.name,
                   instruction.pc,
                   instruction.depth,
                   printer_->Text(function, instruction.pc),
                   {}};
  for (const std::uint32_t reg : RegistersRead(function.code.data() + instruction.pc)) {
    entry.operands.push_back({rewire::RegisterText(function, reg), RegisterText(instruction.registers[reg])});
  }
  sink_(entry);
}

}  // namespace rewire::tools

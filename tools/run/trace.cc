// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/tools/io/register_text.h"

namespace rewire::tools {
namespace {

std::vector<std::uint32_t> RegistersRead(const std::uint32_t* instruction) {
  std::vector<std::uint32_t> registers;
  ForEachRegister(instruction, [&](std::uint32_t reg, RegisterUse use) {
    const bool seen = std::find(registers.begin(), registers.end(), reg) != registers.end();
    if (use != RegisterUse::kWrite && !seen) registers.push_back(reg);  // a kill shows what it releases
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

// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/device_copies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::tools {
namespace {

std::string ReaderText(const InstructionPrinter& printer, const std::uint32_t* instruction) {
  const Opcode opcode = OpcodeOf(*instruction);
  if (opcode == Opcode::kInvokePacked) {
    return printer.KernelText(instruction[WordOf(Opcode::kInvokePacked, "kernel")]);
  }
  if (opcode == Opcode::kRet || opcode == Opcode::kAllocADT) return "an output";
  if (opcode == Opcode::kMove) return "what an If gives or a Loop carries";
  return std::string(Info(opcode).mnemonic);
}

// Names what reads the register from `pc` on, in the order of the code, until it is written or emptied.
std::vector<std::string> ReadersOf(const InstructionPrinter& printer, const Function& function,
                                   std::uint32_t reg, std::size_t pc) {
  std::vector<std::string> readers;
  for (; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
    const std::uint32_t* instruction = &function.code[pc];
    bool reads = false;
    bool ends = false;
    ForEachRegister(instruction, [&](std::uint32_t used, RegisterUse use) {
      if (used != reg) return;
      (use == RegisterUse::kRead ? reads : ends) = true;
    });
    if (reads) {
      std::string reader = ReaderText(printer, instruction);
      if (std::find(readers.begin(), readers.end(), reader) == readers.end())
        readers.push_back(std::move(reader));
    }
    if (ends) break;
  }
  return readers;
}

}  // namespace

std::vector<DeviceCopyPlan> DeviceCopies(const Module& module, const Function& function) {
  constexpr Opcode kCopy = Opcode::kDeviceCopy;
  std::vector<DeviceCopyPlan> copies;
  const InstructionPrinter printer(module);
  for (std::size_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
    const std::uint32_t* words = &function.code[pc];
    if (OpcodeOf(*words) != kCopy) continue;
    DeviceCopyPlan copy;
    copy.pc = static_cast<std::uint32_t>(pc);
    copy.from = DeviceText(module.devices[words[WordOf(kCopy, "src_device")]]);
    copy.to = DeviceText(module.devices[words[WordOf(kCopy, "dst_device")]]);
    copy.source = SourceTextAt(function, copy.pc);
    copy.readers = ReadersOf(printer, function, words[WordOf(kCopy, "dst")], pc + WordsOf(*words));
    copies.push_back(std::move(copy));
  }
  return copies;
}

std::string DeviceCopiesText(const Module& module, const Function& function) {
  std::string text;
  for (const DeviceCopyPlan& copy : DeviceCopies(module, function)) {
    text += fmt::format("{}@{}: copies from {} to {} for {}{}\n", function.name, copy.pc, copy.from, copy.to,
                        copy.readers.empty() ? "nothing that comes later in the code"
                                             : fmt::format("{}", fmt::join(copy.readers, ", ")),
                        copy.source.empty() ? "" : fmt::format("  ; {}", copy.source));
  }
  return text;
}

}  // namespace rewire::tools

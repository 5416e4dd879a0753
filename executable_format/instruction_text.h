// SPDX-License-Identifier: Apache-2.0
// One instruction as a line of text assembly: what error messages, traces and the disassembler print.
//
//   %3 = invoke_packed add(%image, %1, %2), outputs=1
//
// The operand's kind decides how it is spelled (docs/assembly.md), so a new row of isa.def needs nothing
// here. Everything below takes unverified modules: what cannot be named is printed as a number ("#7" for
// entry 7 of a table), and a broken instruction as its words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/export.h"
#include "executable_format/isa.h"
#include "executable_format/module.h"

namespace rewire {

// In which order a row's operands are written, and with what in front. The register that an instruction
// writes stands left of "="; the others follow in the order of the row, except that a list belongs to what it
// is a list of: registers stand after the first operand (a call's arguments), dimensions after the element
// type.
struct InstructionLayout {
  struct Item {
    std::uint8_t operand = 0;
    std::string_view before;  // "", ", ", " == ", " goto " or " else "
  };
  int dst = -1;  // operand left of "=", or -1
  std::uint8_t item_count = 0;
  std::array<Item, kMaxOperands> items{};
};
InstructionLayout LayoutOf(const OpcodeInfo& info);

// The word that each operand of the instruction at `pc` starts at (for a list, its count), or false when the
// words there are no well-formed instruction: an unknown opcode, a wrong length, or past the end.
bool LocateOperands(const Array<std::uint32_t>& code, std::size_t pc,
                    std::array<std::size_t, kMaxOperands>* words);

// True for what may be written without quotes: a letter, "_", "$" or "/", then also digits and ".". Not "_".
bool IsIdentifier(std::string_view text);
// "text" with \" \\ \n \t \r and \xHH escapes.
std::string QuoteText(std::string_view text);
// The identifier itself, or quoted.
std::string NameText(std::string_view name);

// "%4", or for an input "%image".
std::string RegisterText(const Function& function, std::uint32_t reg);
// "cpu", "cuda:0", "opencl:1 "global.texture"".
std::string DeviceText(const DeviceEntry& device);
// The name of a DLDeviceType ("cuda"), or empty when it has none.
std::string_view DeviceTypeName(std::int32_t type);
std::optional<std::int32_t> ParseDeviceTypeName(std::string_view name);

// Spells instructions of one module, which must outlive it and stay unchanged. Threads may share it.
class InstructionPrinter {
 public:
  explicit InstructionPrinter(const Module& module);

  // The instruction at word `pc` without its notes. A jump target is spelled as the label "L<pc>".
  std::string Text(const Function& function, std::size_t pc) const;

  // What refers to an entry of a table: its name, or "#<index>" when it has none of its own (no name, the
  // name of an earlier entry, or past the end).
  std::string ConstantText(std::uint32_t index) const;
  std::string FunctionText(std::uint32_t index) const;
  std::string KernelText(std::uint32_t index) const;  // by debug name, without one by the kernel's name
  std::string DeviceText(std::uint32_t index) const;
  std::string StringText(std::uint32_t index) const;

 private:
  const Module& module_;
  // Per entry: whether its name refers to it.
  Array<std::uint8_t> constants_, functions_, kernels_, devices_, strings_;
};

// The same for one instruction alone. It looks at all tables, so print many instructions with a printer.
REWIRE_API std::string InstructionText(const Module& module, const Function& function, std::size_t pc);

}  // namespace rewire

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
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/executable_format/isa.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// The order in which a row's operands are written, and the text in front of each. The register that an
// instruction writes stands left of "=". The others follow in the order of the row, except lists: registers
// follow the first operand (as a call's arguments), and dimensions follow the element type.
struct InstructionLayout {
  struct Item {
    std::uint8_t operand = 0;
    std::string_view before;  // "", ", ", " == ", " goto " or " else "
  };
  int dst = -1;  // the operand left of "=", or -1
  std::uint8_t item_count = 0;
  std::array<Item, kMaxOperands> items{};
};
InstructionLayout LayoutOf(const OpcodeInfo& info);

// Finds the word at which each operand of the instruction at `pc` starts; for a list, the word of its count.
// Returns false if there is no well-formed instruction: an unknown opcode, a wrong length, or past the end.
bool LocateOperands(const Array<std::uint32_t>& code, std::size_t pc,
                    std::array<std::size_t, kMaxOperands>* words);

// True for a name that needs no quotes: a letter, "_", "$" or "/" first, then also digits and ".". "_" alone
// is none.
bool IsIdentifier(std::string_view text);
// "text" with \" \\ \n \t \r and \xHH escapes.
std::string QuoteText(std::string_view text);
// The name, in quotes if it is no identifier.
std::string NameText(std::string_view name);

// "%4", or for an input "%image".
std::string RegisterText(const Function& function, std::uint32_t reg);
// The source note of the instruction at `pc`, such as a node of the model; empty if it has none.
std::string SourceTextAt(const Function& function, std::uint32_t pc);
// "cpu", "cuda:0", "opencl:1 "global.texture"".
std::string DeviceText(const DeviceEntry& device);
// The name of a DLDeviceType ("cuda"), or empty if it has none.
std::string_view DeviceTypeName(std::int32_t type);
std::optional<std::int32_t> ParseDeviceTypeName(std::string_view name);

// Prints instructions of one module, which must outlive the printer and stay unchanged. Several threads may
// share a printer.
class InstructionPrinter {
 public:
  explicit InstructionPrinter(const Module& module);

  static constexpr std::uint32_t kAllOperands = std::numeric_limits<std::uint32_t>::max();

  // The instruction at word `pc`, without its notes. A jump target is printed as the label "L<pc>". Of a list
  // at most `most` operands are printed, and then how many follow.
  std::string Text(const Function& function, std::size_t pc, std::uint32_t most = kAllOperands) const;

  // How text refers to a table entry: its name, or "#<index>" if the name does not identify it. That is so if
  // it has no name, the name of an earlier entry, or an index past the end.
  std::string ConstantText(std::uint32_t index) const;
  std::string FunctionText(std::uint32_t index) const;
  std::string KernelText(std::uint32_t index) const;  // by debug name, or else by the kernel's name
  std::string DeviceText(std::uint32_t index) const;
  std::string StringText(std::uint32_t index) const;

 private:
  friend std::string ShortInstructionText(const Module& module, const Function& function, std::size_t pc);
  struct ForOne {};
  InstructionPrinter(const Module& module, ForOne) : module_(module), searches_(true) {}
  // `named` is one of the tables below; `name_at` gives the name of an entry.
  template <typename NameAt>
  bool HasName(const Array<std::uint8_t>& named, std::size_t count, std::uint32_t index,
               const NameAt& name_at) const;

  const Module& module_;
  const bool searches_ = false;  // there are no tables: names are compared when they are asked for
  // Per entry: true if its name identifies it.
  Array<std::uint8_t> constants_, functions_, kernels_, devices_, strings_;
};

// The instruction for an error message: at most 16 operands of a list, and at most some 300 characters. Takes
// time for the names of one instruction, not for all names of the module.
REWIRE_API std::string ShortInstructionText(const Module& module, const Function& function, std::size_t pc);

}  // namespace rewire

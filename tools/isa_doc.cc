// SPDX-License-Identifier: Apache-2.0
// isa-doc: prints docs/isa.md. The document is the table of isa.def, so that the two cannot disagree.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "executable_format/instruction_text.h"
#include "executable_format/isa.h"

namespace {

using namespace rewire;  // NOLINT: a small program about one library

struct KindRow {
  OperandKind kind;
  std::string_view name;
  std::string_view spelling;
  std::string_view meaning;
};

// In the order of the enumeration, which KindsAreComplete checks.
constexpr KindRow kKinds[] = {
    {OperandKind::kRead, "READ", "`%x`", "register read"},
    {OperandKind::kOptRead, "OPT_READ", "`%x` or `_`", "register read, or none"},
    {OperandKind::kWrite, "WRITE", "`%x =` in front", "register written"},
    {OperandKind::kOptWrite, "OPT_WRITE", "`%x =` in front, or nothing", "register written, or none"},
    {OperandKind::kKill, "KILL", "`%x`", "register emptied"},
    {OperandKind::kImm32, "IMM32", "`name=7`", "unsigned 32-bit number"},
    {OperandKind::kImm64, "IMM64", "`-7`", "signed 64-bit number, low word first"},
    {OperandKind::kDType, "DTYPE", "`f32`", "element type: code in bits 0-7, bits in 8-15, lanes in 16-31"},
    {OperandKind::kConstant, "CONSTANT", "`name`", "index in the table of constants"},
    {OperandKind::kFunction, "FUNCTION", "`name`", "index in the table of functions"},
    {OperandKind::kKernel, "KERNEL", "`name`", "index in the table of kernel imports"},
    {OperandKind::kDevice, "DEVICE", "`cpu`, `cuda:0`", "index in the table of devices"},
    {OperandKind::kString, "STRING", "`\"text\"` or `_`", "index in the table of strings, or none"},
    {OperandKind::kTarget, "TARGET", "`label`",
     "jump: signed distance in words from this instruction's start"},
    {OperandKind::kReads, "READS", "`(%x, %y)`", "count, then registers read"},
    {OperandKind::kDims, "DIMS", "`[4, 10]` behind the element type", "count, then 64-bit dimensions"},
};

consteval bool KindsAreComplete() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  }
  return std::size(kKinds) == static_cast<std::size_t>(OperandKind::kDims) + 1;
}
static_assert(KindsAreComplete(), "every kind of operand needs its row, in order");

std::string_view FlowText(Flow flow) {
  switch (flow) {
    case Flow::kNext:
      return "goes on with the next instruction";
    case Flow::kJump:
      return "goes on at its target";
    case Flow::kBranch:
      return "goes on at one of its targets";
    case Flow::kCall:
      return "enters a function and then goes on with the next instruction";
    case Flow::kEnd:
      return "leaves the function or stops the program";
  }
  return {};
}

const KindRow& Row(OperandKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string Placeholder(const OperandInfo& operand) {
  switch (operand.kind) {
    case OperandKind::kRead:
    case OperandKind::kOptRead:
    case OperandKind::kWrite:
    case OperandKind::kOptWrite:
    case OperandKind::kKill:
      return fmt::format("%{}", operand.name);
    case OperandKind::kImm32:
      return fmt::format("{}=N", operand.name);
    case OperandKind::kReads:
      return fmt::format("(%{}...)", operand.name);
    case OperandKind::kDims:
      return fmt::format("[{}...]", operand.name);
    case OperandKind::kString:
      return fmt::format("\"{}\"", operand.name);
    case OperandKind::kImm64:
    case OperandKind::kDType:
    case OperandKind::kConstant:
    case OperandKind::kFunction:
    case OperandKind::kKernel:
    case OperandKind::kDevice:
    case OperandKind::kTarget:
      return std::string(operand.name);
  }
  return {};
}

std::string Syntax(const OpcodeInfo& info) {
  const InstructionLayout layout = LayoutOf(info);
  std::string text;
  if (layout.dst >= 0) {
    const OperandInfo& dst = info.operands[layout.dst];
    const bool optional = dst.kind == OperandKind::kOptWrite;
    text = fmt::format("{}%{} ={} ", optional ? "[" : "", dst.name, optional ? "]" : "");
  }
  text += info.mnemonic;
  for (std::size_t i = 0; i < layout.item_count; ++i) {
    text += i == 0 ? " " : layout.items[i].before;
    text += Placeholder(info.operands[layout.items[i].operand]);
  }
  return text;
}

std::string_view Meaning(Opcode opcode) {
  switch (opcode) {
#define REWIRE_OPCODE(Name, code, mnemonic, flow, meaning, ...) \
  case Opcode::k##Name:                                         \
    return meaning;
#include "executable_format/isa.def"
#undef REWIRE_OPCODE
  }
  return {};
}

std::string Section(const OpcodeInfo& info) {
  std::string text =
      fmt::format("\n## {} ({})\n\n    {}\n\n{}; {}.\n", info.mnemonic, static_cast<int>(info.opcode),
                  Syntax(info), Meaning(info.opcode), FlowText(info.flow));
  text += "\n| word | operand | kind | meaning |\n|---|---|---|---|\n";
  std::uint32_t word = 1;
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    const OperandInfo& operand = info.operands[i];
    const std::uint32_t words = OperandWords(operand.kind);
    const std::string place = IsList(operand.kind) ? fmt::format("{} ...", word)
                              : words == 1         ? fmt::format("{}", word)
                                                   : fmt::format("{}-{}", word, word + words - 1);
    text += fmt::format("| {} | `{}` | {} | {} |\n", place, operand.name, Row(operand.kind).name,
                        Row(operand.kind).meaning);
    word += words;
  }
  return text;
}

std::string Document() {
  std::string text = R"(# Instruction set

<!-- Generated by isa-doc from executable_format/isa.def. Change that, then: isa-doc > docs/isa.md -->

An instruction is a sequence of 32-bit words. Word 0 holds the code in its low 8 bits and the length of the whole
instruction in words in the other 24; the operands follow. Registers, and indices of tables, are one word; the word
0xFFFFFFFF says "none" where a kind allows it. docs/assembly.md describes the text, docs/format.md the file around it,
and docs/verification.md what a program must keep to.

## Kinds of operand

| kind | in text | in code |
|---|---|---|
)";
  for (const KindRow& row : kKinds)
    text += fmt::format("| {} | {} | {} |\n", row.name, row.spelling, row.meaning);
  for (const OpcodeInfo& info : kOpcodes) text += Section(info);
  return text;
}

}  // namespace

int main() {
  const std::string document = Document();
  return std::fwrite(document.data(), 1, document.size(), stdout) == document.size() &&
                 std::fflush(stdout) == 0
             ? 0
             : 1;
}

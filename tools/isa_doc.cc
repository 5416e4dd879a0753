// SPDX-License-Identifier: Apache-2.0
//
// isa-doc: prints docs/isa.md from the table of isa.def, so that the two cannot disagree.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/isa.h"

namespace {

using namespace rewire;  // NOLINT: a small program about one library

// The words of isa.def about a kind of operand for readers alone, by the kind's number.
struct KindText {
  std::string_view name;
  std::string_view spelling;
  std::string_view meaning;
};
constexpr KindText kKinds[] = {
#define REWIRE_OPERAND_KIND(Name, ROW_NAME, words, count, use, table, spelling, meaning) \
  {#ROW_NAME, spelling, meaning},
#include "rewire/executable_format/isa.def"
};

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

const KindText& Row(OperandKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

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
    const bool optional = IsOptional(dst.kind);
    text = fmt::format("{}%{} ={} ", optional ? "[" : "", dst.name, optional ? "]" : "");
  }
  text += info.mnemonic;
  for (std::size_t i = 0; i < layout.item_count; ++i) {
    text += i == 0 ? " " : layout.items[i].before;
    text += Placeholder(info.operands[layout.items[i].operand]);
  }
  return text;
}

std::string_view AcceptsText(Accepts accepts) {
  switch (accepts) {
    case Accepts::kAny:
      return "any value";
    case Accepts::kScalar:
      return "an integer or a tensor";
    case Accepts::kArgument:
      return "an integer, a tensor or an ADT";
    case Accepts::kAdt:
      return "an ADT";
    case Accepts::kClosure:
      return "a closure";
    case Accepts::kStorage:
      return "a storage";
    case Accepts::kInputs:
      return "what the function's inputs take";
    case Accepts::kResult:
      return "what this function returns";
  }
  return {};
}

std::string MakesText(const OpcodeInfo& info, const OperandInfo& operand) {
  const std::string source =
      operand.source < info.operand_count ? fmt::format("`{}`", info.operands[operand.source].name) : "";
  switch (operand.makes) {
    case Makes::kNone:
      return "";
    case Makes::kNothing:
      return "nothing";
    case Makes::kSame:
      return "the object of " + source;
    case Makes::kView:
      return "a tensor in the memory of " + source;
    case Makes::kField:
      return "an object inside " + source;
    case Makes::kTuple:
      return "an ADT that holds " + source;
    case Makes::kClosure:
      return "a closure that holds " + source;
    case Makes::kTensor:
      return "a tensor on " + source + " with undefined contents";
    case Makes::kShape:
      return "a tensor with the shape of " + source;
    case Makes::kCopy:
      return "a tensor with the elements of " + source;
    case Makes::kCalled:
      return "what the function returned for " + source;
    case Makes::kComputed:
      return "what the kernel returned for " + source;
    case Makes::kStorage:
      return "a storage";
    case Makes::kInteger:
      return "an integer";
    case Makes::kLoaded:
      return "a constant";
  }
  return {};
}

// The kinds that a register holds before or after the instruction.
std::string HoldsText(const OpcodeInfo& info, const OperandInfo& operand) {
  switch (TraitsOf(operand.kind).use) {
    case RegisterUse::kNone:
      return "";
    case RegisterUse::kRead:
      return fmt::format("{}{}", AcceptsText(operand.accepts),
                         operand.access == Access::kContents ? ", whose contents are read" : "");
    case RegisterUse::kWrite:
    case RegisterUse::kKill:
      return MakesText(info, operand);
  }
  return {};
}

std::string_view Meaning(Opcode opcode) {
  switch (opcode) {
#define REWIRE_OPCODE(Name, code, mnemonic, flow, meaning, ...) \
  case Opcode::k##Name:                                         \
    return meaning;
#include "rewire/executable_format/isa.def"
  }
  return {};
}

std::string Section(const OpcodeInfo& info) {
  std::string text =
      fmt::format("\n## {} ({})\n\n    {}\n\n{}; {}.\n", info.mnemonic, static_cast<int>(info.opcode),
                  Syntax(info), Meaning(info.opcode), FlowText(info.flow));
  text += "\n| word | operand | kind | meaning | holds |\n|---|---|---|---|---|\n";
  std::uint32_t word = 1;
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    const OperandInfo& operand = info.operands[i];
    const std::uint32_t words = OperandWords(operand.kind);
    const std::string place = IsList(operand.kind) ? fmt::format("{} ...", word)
                              : words == 1         ? fmt::format("{}", word)
                                                   : fmt::format("{}-{}", word, word + words - 1);
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", place, operand.name, Row(operand.kind).name,
                        Row(operand.kind).meaning, HoldsText(info, operand));
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
  for (const KindText& row : kKinds)
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

// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/function_parser.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/text/registers.h"

namespace rewire::text {
namespace {

// An operand as read, in the order of the text; encoded when all are there, in the order of the row.
struct Operand {
  std::uint32_t word = kNone;        // every kind of one word
  std::int64_t integer = 0;          // kImm64
  Array<std::uint32_t> regs;         // kReads
  Array<std::int64_t> dims;          // kDims
  std::optional<std::string> label;  // kTarget, if not a distance in `word`
  Position position;
};

class BodyParser {
 public:
  BodyParser(Cursor& cursor, Tables& tables, Function& function)
      : cursor_(cursor), tables_(tables), function_(function), registers_(function, cursor) {}

  void Run() {
    const Position start = cursor_.Peek().position;
    while (!cursor_.diagnostics().full() && !IsDirective(".end")) {
      if (cursor_.Peek().kind == TokenKind::kEnd || IsDirective(".func")) {
        cursor_.Fail(cursor_.Peek().position,
                     fmt::format("function '{}' has no .end before this", function_.name));
        break;
      }
      if (!Statement()) cursor_.SkipStatement();
    }
    if (IsDirective(".end")) {
      cursor_.Take();
      if (!cursor_.ExpectEndOfStatement()) cursor_.SkipStatement();
    }
    Finish(start);
  }

 private:
  struct LabelUse {
    CodeWriter::Label label;
    bool bound = false;
    Position first_use;
  };

  bool IsDirective(std::string_view name) const {
    return cursor_.Peek().kind == TokenKind::kDirective && cursor_.Peek().text == name;
  }

  bool Statement() {
    if (cursor_.Peek().kind == TokenKind::kNewline) return cursor_.ExpectEndOfStatement();
    if (cursor_.Peek().kind == TokenKind::kDirective) return Directive() && cursor_.ExpectEndOfStatement();
    if (cursor_.Peek().kind == TokenKind::kName && cursor_.Peek(1).Is(":")) {
      if (!DefineLabel()) return false;
      if (cursor_.Peek().EndsStatement()) return cursor_.ExpectEndOfStatement();
    }
    return Instruction() && Notes() && cursor_.ExpectEndOfStatement();
  }

  bool Directive() {
    const Token directive = cursor_.Take();
    if (directive.text == ".registers") {
      const std::optional<std::uint32_t> count = cursor_.TakeUInt32("the number of registers");
      if (count) register_count_ = *count;
      return count.has_value();
    }
    if (directive.text == ".words") {
      do {
        const std::optional<std::uint32_t> word = cursor_.TakeUInt32("a 32-bit word");
        if (!word) return false;
        code_.Word(*word);
      } while (cursor_.Accept(","));
      return true;
    }
    if (directive.text == ".note") {
      const std::optional<std::uint32_t> pc = cursor_.TakeUInt32("the note's place, a word of the code");
      std::optional<std::string> text = pc ? cursor_.TakeString("a note in quotes") : std::nullopt;
      if (text) function_.notes.push_back({*pc, std::move(*text)});
      return text.has_value();
    }
    const Array<std::string> known = {".end", ".registers", ".words", ".note"};
    return cursor_.Fail(directive.position, fmt::format("unknown directive '{}' inside a function{}",
                                                        directive.text, DidYouMean(directive.text, known)));
  }

  LabelUse& FindLabel(const std::string& name, Position position) {
    auto found = labels_.find(name);
    if (found == labels_.end())
      found = labels_.emplace(name, LabelUse{code_.NewLabel(), false, position}).first;
    return found->second;
  }

  bool DefineLabel() {
    const Token name = cursor_.Take();
    cursor_.Take();
    LabelUse& label = FindLabel(std::string(name.text), name.position);
    if (label.bound)
      return cursor_.Fail(name.position, fmt::format("label '{}' is defined twice", name.text));
    label.bound = true;
    code_.Bind(label.label);
    return true;
  }

  bool Instruction() {
    pc_ = code_.pc();
    std::array<Operand, kMaxOperands> operands;
    const Position start = cursor_.Peek().position;
    std::optional<std::uint32_t> dst;
    if (cursor_.Peek().kind == TokenKind::kRegister) {
      dst = registers_.Take(cursor_, Registers::Use::kWrite);
      if (!dst || !cursor_.Expect("=")) return false;
    }
    const OpcodeInfo* info = TakeMnemonic();
    if (info == nullptr) return false;
    const InstructionLayout layout = LayoutOf(*info);
    if (dst && layout.dst < 0) {
      return cursor_.Fail(start, fmt::format("{} gives no result; write it without '='", info->mnemonic));
    }
    if (!dst && layout.dst >= 0 && !IsOptional(info->operands[layout.dst].kind)) {
      return cursor_.Fail(start, fmt::format("{} gives a result; write '%{} = {} ...'", info->mnemonic,
                                             info->operands[layout.dst].name, info->mnemonic));
    }
    if (dst) operands[layout.dst].word = *dst;
    for (std::size_t i = 0; i < layout.item_count; ++i) {
      const InstructionLayout::Item& item = layout.items[i];
      const OperandInfo& operand = info->operands[item.operand];
      if (IsOptional(operand.kind) && cursor_.Peek().EndsStatement()) continue;
      if (!TakeSeparator(item.before) || !TakeOperand(operand, &operands[item.operand])) return false;
    }
    Emit(*info, operands);
    return true;
  }

  const OpcodeInfo* TakeMnemonic() {
    const Token token = cursor_.Peek();
    if (token.kind == TokenKind::kName) {
      for (const OpcodeInfo& info : kOpcodes) {
        if (info.mnemonic != token.text) continue;
        cursor_.Take();
        return &info;
      }
      Array<std::string> known;
      for (const OpcodeInfo& info : kOpcodes) known.emplace_back(info.mnemonic);
      cursor_.Fail(token.position,
                   fmt::format("unknown instruction '{}'{}", token.text, DidYouMean(token.text, known)));
      return nullptr;
    }
    cursor_.FailExpected("an instruction");
    return nullptr;
  }

  // A layout's separator is a mark or a word between blanks.
  bool TakeSeparator(std::string_view before) {
    while (!before.empty() && before.front() == ' ') before.remove_prefix(1);
    while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
    if (before.empty()) return true;
    return cursor_.Accept(before) || cursor_.AcceptName(before) ||
           cursor_.FailExpected(fmt::format("'{}'", before));
  }

  bool TakeWord(std::optional<std::uint32_t> word, Operand* operand) {
    if (word) operand->word = *word;
    return word.has_value();
  }

  bool TakeOperand(const OperandInfo& info, Operand* operand) {
    operand->position = cursor_.Peek().position;
    switch (info.kind) {
      case OperandKind::kOptRead:
      case OperandKind::kOptWrite:
        if (cursor_.Accept("_")) return true;
        [[fallthrough]];
      case OperandKind::kRead:
      case OperandKind::kKill:
        return TakeWord(registers_.Take(cursor_, Registers::Use::kRead), operand);
      case OperandKind::kWrite:
        return TakeWord(registers_.Take(cursor_, Registers::Use::kWrite), operand);
      case OperandKind::kImm32:
        if (!cursor_.AcceptName(info.name)) return cursor_.FailExpected(fmt::format("'{}='", info.name));
        if (!cursor_.Expect("=")) return false;
        return TakeWord(cursor_.TakeUInt32("an unsigned 32-bit number"), operand);
      case OperandKind::kImm64: {
        const std::optional<std::int64_t> value = cursor_.TakeInt64("a 64-bit number");
        if (value) operand->integer = *value;
        return value.has_value();
      }
      case OperandKind::kDType:
        return TakeDType(operand);
      case OperandKind::kConstant:
        return TakeWord(tables_.constants.TakeReference(cursor_), operand);
      case OperandKind::kFunction:
        return TakeWord(tables_.functions.TakeReference(cursor_), operand);
      case OperandKind::kKernel:
        return TakeWord(tables_.kernels.TakeReference(cursor_), operand);
      case OperandKind::kDevice:
        return TakeWord(TakeDevice(cursor_, tables_), operand);
      case OperandKind::kString:
        return TakeStringOperand(operand);
      case OperandKind::kTarget:
        return TakeTarget(operand);
      case OperandKind::kReads:
        return TakeReads(operand);
      case OperandKind::kDims:
        return TakeDims(operand);
    }
    return false;
  }

  bool TakeDType(Operand* operand) {
    const Token& token = cursor_.Peek();
    const std::optional<DLDataType> dtype =
        token.kind == TokenKind::kName ? ParseDType(token.text) : std::nullopt;
    if (!dtype) return cursor_.FailExpected("an element type such as f32");
    operand->word = EncodeDType(*dtype);
    cursor_.Take();
    return true;
  }

  bool TakeStringOperand(Operand* operand) {
    if (cursor_.Accept("_")) return true;
    if (cursor_.Peek().Is("#")) return TakeWord(cursor_.TakeIndex(), operand);
    const std::optional<std::string> text = cursor_.TakeString("a text in quotes");
    if (text) operand->word = tables_.String(*text);
    return text.has_value();
  }

  // A label, or a signed distance in words.
  bool TakeTarget(Operand* operand) {
    const Token token = cursor_.Peek();
    if (token.kind == TokenKind::kName) {
      operand->label = std::string(cursor_.Take().text);
      return true;
    }
    const bool is_distance =
        token.kind == TokenKind::kNumber && (token.text[0] == '+' || token.text[0] == '-');
    if (!is_distance) return cursor_.FailExpected("a label");
    const std::optional<std::int64_t> distance = cursor_.TakeInt64("a label");
    if (!distance) return false;
    if (*distance != static_cast<std::int32_t>(*distance)) {
      return cursor_.Fail(token.position, "a distance has 32 bits");
    }
    operand->word = static_cast<std::uint32_t>(*distance);
    return true;
  }

  bool TakeReads(Operand* operand) {
    if (!cursor_.Expect("(")) return false;
    while (!cursor_.Accept(")")) {
      if (!operand->regs.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ')'");
      const std::optional<std::uint32_t> reg = registers_.Take(cursor_, Registers::Use::kRead);
      if (!reg) return false;
      operand->regs.push_back(*reg);
    }
    return true;
  }

  // Absent dimensions are none: "f32" is "f32[]".
  bool TakeDims(Operand* operand) {
    if (!cursor_.Accept("[")) return true;
    while (!cursor_.Accept("]")) {
      if (!operand->dims.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ']'");
      const std::optional<std::int64_t> dim = cursor_.TakeInt64("a dimension, a number");
      if (!dim) return false;
      operand->dims.push_back(*dim);
    }
    return true;
  }

  void Emit(const OpcodeInfo& info, const std::array<Operand, kMaxOperands>& operands) {
    code_.Begin(info.opcode);
    for (std::size_t i = 0; i < info.operand_count; ++i) {
      const Operand& operand = operands[i];
      switch (info.operands[i].kind) {
        case OperandKind::kImm64:
          code_.Int64(operand.integer);
          break;
        case OperandKind::kReads:
          code_.RegList(operand.regs);
          break;
        case OperandKind::kDims:
          code_.DimList(operand.dims);
          break;
        case OperandKind::kTarget:
          if (operand.label) {
            code_.Target(FindLabel(*operand.label, operand.position).label);
          } else {
            code_.Word(operand.word);
          }
          break;
        case OperandKind::kRead:
        case OperandKind::kOptRead:
        case OperandKind::kWrite:
        case OperandKind::kOptWrite:
        case OperandKind::kKill:
        case OperandKind::kImm32:
        case OperandKind::kDType:
        case OperandKind::kConstant:
        case OperandKind::kFunction:
        case OperandKind::kKernel:
        case OperandKind::kDevice:
        case OperandKind::kString:
          code_.Word(operand.word);
          break;
      }
    }
    code_.End();
  }

  bool Notes() {
    while (cursor_.Accept("@")) {
      std::optional<std::string> text = cursor_.TakeString("a note in quotes");
      if (!text) return false;
      function_.notes.push_back({pc_, std::move(*text)});
    }
    return true;
  }

  void Finish(Position start) {
    Array<std::string> known;
    for (const auto& [name, label] : labels_) {
      if (label.bound) known.push_back(name);
    }
    for (auto& [name, label] : labels_) {
      if (label.bound) continue;
      cursor_.Fail(label.first_use, fmt::format("label '{}' is not defined in function '{}'{}", name,
                                                function_.name, DidYouMean(name, known)));
      code_.Bind(label.label);  // reported; what is left of the code is not used
    }
    registers_.ReportUnwritten(cursor_.diagnostics());
    Result<Array<std::uint32_t>> code = code_.Finish();
    if (!code) {
      cursor_.Fail(start, code.error().message());
      return;
    }
    function_.code = std::move(*code);
    function_.register_count = register_count_.value_or(registers_.count());
  }

  Cursor& cursor_;
  Tables& tables_;
  Function& function_;
  Registers registers_;
  CodeWriter code_;
  std::map<std::string, LabelUse> labels_;
  std::optional<std::uint32_t> register_count_;
  std::uint32_t pc_ = 0;  // of the instruction that is being read
};

}  // namespace

void TakeFunctionBody(Cursor& cursor, Tables& tables, Function* function) {
  BodyParser(cursor, tables, *function).Run();
}

}  // namespace rewire::text

// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/function_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::text {
namespace {

// The role of a word of the code.
enum class Place : std::uint8_t { kInside, kInstruction, kTarget };

// How one function's code divides into instructions and what it refers to.
class CodeMap {
 public:
  explicit CodeMap(const Function& function) : function_(function), places_(function.code.size()) {
    std::array<std::size_t, kMaxOperands> words;
    while (LocateOperands(function.code, end_, &words)) {
      places_[end_] = Place::kInstruction;
      end_ += WordsOf(function.code[end_]);
    }
    for (std::size_t pc = 0; pc < end_; pc += WordsOf(function.code[pc])) {
      if (IsSpelt(pc)) MarkTargets(pc);
    }
  }

  // The end of whole instructions; the words from there on mean nothing.
  std::size_t end() const { return end_; }
  bool IsTarget(std::size_t pc) const { return places_[pc] == Place::kTarget; }

  // Whether the text of the instruction reads back to its words.
  bool IsSpelt(std::size_t pc) const {
    bool spelt = true;
    ForEachOperand(&function_.code[pc], [&](const OperandInfo& operand, const std::uint32_t* words,
                                            std::uint32_t count) {
      if (IsRegister(operand.kind) && !IsOptional(operand.kind)) {
        spelt = spelt && std::find(words, words + count, kNone) == words + count;
      } else if (operand.kind == OperandKind::kDType) {
        spelt = spelt && IsValidDType(DecodeDType(*words));
      } else if (operand.kind == OperandKind::kTarget) {
        const std::int64_t target = Target(pc, *words);
        const bool inside = target >= 0 && target < static_cast<std::int64_t>(places_.size());
        spelt = spelt && (!inside || places_[static_cast<std::size_t>(target)] != Place::kInside);
      }
    });
    return spelt;
  }

  // Registers that the spelt instructions name, inputs included: the assembler's count.
  std::uint32_t RegisterCount() const {
    auto count = static_cast<std::uint32_t>(function_.inputs.size());
    for (std::size_t pc = 0; pc < end_; pc += WordsOf(function_.code[pc])) {
      if (!IsSpelt(pc)) continue;
      ForEachRegister(&function_.code[pc],
                      [&](std::uint32_t reg, RegisterUse) { count = std::max(count, reg + 1); });
    }
    return count;
  }

 private:
  static std::int64_t Target(std::size_t pc, std::uint32_t word) {
    return static_cast<std::int64_t>(pc) + static_cast<std::int32_t>(word);
  }

  void MarkTargets(std::size_t pc) {
    ForEachOperand(&function_.code[pc],
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
                     if (operand.kind != OperandKind::kTarget) return;
                     const std::int64_t target = Target(pc, *words);
                     if (target < 0 || target >= static_cast<std::int64_t>(places_.size())) return;
                     places_[static_cast<std::size_t>(target)] = Place::kTarget;
                   });
  }

  const Function& function_;
  Array<Place> places_;
  std::size_t end_ = 0;
};

std::string WordsText(const Array<std::uint32_t>& code, std::size_t begin, std::size_t end) {
  std::string text = "  .words";
  for (std::size_t i = begin; i < end; ++i)
    text += fmt::format("{} 0x{:08x}", i == begin ? "" : ",", code[i]);
  return text;
}

std::string NoteLine(const SourceNote& note) {
  return fmt::format("  .note {} {}\n", note.pc, QuoteText(note.text));
}

}  // namespace

std::string FunctionPrinter::Body(const Function& function) {
  const CodeMap map(function);
  const Array<SourceNote>& notes = function.notes;
  const bool sorted = std::is_sorted(notes.begin(), notes.end(),
                                     [](const SourceNote& a, const SourceNote& b) { return a.pc < b.pc; });
  std::string body;
  if (map.RegisterCount() != function.register_count)
    body += fmt::format("  .registers {}\n", function.register_count);
  std::size_t note = 0;
  if (!sorted) {
    for (; note < notes.size(); ++note) body += NoteLine(notes[note]);
  }
  for (std::size_t pc = 0; pc < map.end(); pc += WordsOf(function.code[pc])) {
    for (; note < notes.size() && notes[note].pc < pc; ++note) body += NoteLine(notes[note]);
    if (map.IsTarget(pc)) body += fmt::format("L{}:\n", pc);
    if (map.IsSpelt(pc)) {
      NoteStrings(function, pc);
      body += "  " + instructions_.Text(function, pc);
      for (; note < notes.size() && notes[note].pc == pc; ++note) body += " @ " + QuoteText(notes[note].text);
    } else {
      body += WordsText(function.code, pc, pc + WordsOf(function.code[pc])) + " ; " +
              instructions_.Text(function, pc);
    }
    body += '\n';
  }
  if (map.end() != function.code.size()) {
    body += WordsText(function.code, map.end(), function.code.size()) + " ; no instruction\n";
  }
  for (; note < notes.size(); ++note) body += NoteLine(notes[note]);
  return body;
}

void FunctionPrinter::NoteStrings(const Function& function, std::size_t pc) {
  ForEachOperand(&function.code[pc],
                 [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
                   if (operand.kind != OperandKind::kString || *words == kNone) return;
                   const bool by_index = instructions_.StringText(*words).front() == '#';
                   if (by_index || *words > next_string_) in_order_ = false;
                   if (*words == next_string_) ++next_string_;
                 });
}

}  // namespace rewire::text

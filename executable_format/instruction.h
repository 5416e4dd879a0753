// SPDX-License-Identifier: Apache-2.0
//
// Reads instructions from a code stream. These functions do not check the stream. Use them only on code that
// passed the verifier's structural checks, or that this process wrote.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <cstring>

#include "rewire/base/span.h"
#include "rewire/executable_format/effects.h"
#include "rewire/executable_format/isa.h"

namespace rewire {

constexpr std::uint32_t InstructionHeader(Opcode opcode, std::uint32_t words) {
  return static_cast<std::uint32_t>(opcode) | (words << 8);
}
constexpr Opcode OpcodeOf(std::uint32_t header) { return static_cast<Opcode>(header & 0xFF); }
constexpr std::uint32_t WordsOf(std::uint32_t header) { return header >> 8; }

constexpr std::uint32_t EncodeDType(DLDataType type) {
  return std::uint32_t{type.code} | (std::uint32_t{type.bits} << 8) | (std::uint32_t{type.lanes} << 16);
}
constexpr DLDataType DecodeDType(std::uint32_t word) {
  return DLDataType{static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8),
                    static_cast<std::uint16_t>(word >> 16)};
}
inline std::int64_t DecodeInt64(const std::uint32_t* words) {
  return static_cast<std::int64_t>(std::uint64_t{words[0]} | (std::uint64_t{words[1]} << 32));
}

// A list operand of 64-bit dimensions, read in place.
class DimsView {
 public:
  explicit DimsView(const std::uint32_t* count_word) : count_word_(count_word) {}
  std::uint32_t size() const { return *count_word_; }
  std::int64_t operator[](std::uint32_t i) const { return DecodeInt64(count_word_ + 1 + 2 * std::size_t{i}); }

 private:
  const std::uint32_t* count_word_;
};

inline Span<const std::uint32_t> ReadsView(const std::uint32_t* count_word) {
  return {count_word + 1, *count_word};
}

// Calls visit(const OperandInfo&, const std::uint32_t* words, std::uint32_t count) for each operand in order.
// `words` points to the operand's first word, or to a list's first element. `count` is a list's number of
// elements, otherwise 1.
template <typename Visit>
void ForEachOperand(const std::uint32_t* instruction, Visit&& visit) {
  const OpcodeInfo& info = Info(OpcodeOf(*instruction));
  const std::uint32_t* word = instruction + 1;
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    const OperandInfo& operand = info.operands[i];
    if (IsList(operand.kind)) {
      visit(operand, word + 1, *word);
      word += 1 + std::size_t{*word} * OperandWords(operand.kind);
    } else {
      visit(operand, word, 1u);
      word += OperandWords(operand.kind);
    }
  }
}

inline const Effects& EffectsOf(const std::uint32_t* instruction) {
  return EffectsOf(OpcodeOf(*instruction));
}

// The register that an instruction changes; kNone if there is none.
inline std::uint32_t ChangedRegister(const std::uint32_t* instruction) {
  const Effects& effects = EffectsOf(instruction);
  return effects.dst != 0 ? instruction[effects.dst] : kNone;
}

// The registers of an instruction's list; none if it has no list of registers.
inline Span<const std::uint32_t> ListedRegisters(const std::uint32_t* instruction) {
  const Effects& effects = EffectsOf(instruction);
  return effects.list.word != 0 ? ReadsView(instruction + effects.list.word) : Span<const std::uint32_t>();
}

// Calls visit(register) for each register whose contents an instruction reads, the listed ones last. A kernel
// writes some of its listed arguments instead; the caller knows which.
template <typename Visit>
void ForEachContentsRead(const std::uint32_t* instruction, Visit&& visit) {
  const Effects& effects = EffectsOf(instruction);
  for (std::size_t i = 0; i < effects.read_count; ++i) {
    const Effects::Read& read = effects.reads[i];
    if (read.access == Access::kContents && instruction[read.word] != kNone) visit(instruction[read.word]);
  }
  if (effects.list.word == 0 || effects.list.access != Access::kContents) return;
  for (const std::uint32_t reg : ReadsView(instruction + effects.list.word)) visit(reg);
}

// Calls visit(register, RegisterUse) for each register that an instruction names, in the order of its
// operands. None is named where an optional operand is kNone.
template <typename Visit>
void ForEachRegister(const std::uint32_t* instruction, Visit&& visit) {
  const Effects& effects = EffectsOf(instruction);
  for (std::uint32_t i = 0; i < effects.read_count; ++i) {
    const std::uint32_t reg = instruction[effects.reads[i].word];
    if (reg != kNone) visit(reg, RegisterUse::kRead);
  }
  if (const std::uint32_t dst = ChangedRegister(instruction); dst != kNone)
    visit(dst, effects.makes == Makes::kNothing ? RegisterUse::kKill : RegisterUse::kWrite);
  for (const std::uint32_t reg : ListedRegisters(instruction)) {
    if (reg != kNone) visit(reg, RegisterUse::kRead);
  }
}

// Calls visit(word) for each word that an instruction may jump to; `pc` is its own word.
template <typename Visit>
void ForEachTarget(const std::uint32_t* instruction, std::uint32_t pc, Visit&& visit) {
  ForEachOperand(instruction, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
    if (operand.kind == OperandKind::kTarget) visit(pc + *words);  // wraps for a jump backwards
  });
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
// Which registers hold a value that is read later, at the ends of basic blocks. A kill counts as a write:
// what was there is of no use afterwards.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/instruction.h"

namespace rewire::tvm {

// The instructions of a function by index, with their words and successors.
class CodeIndex {
 public:
  // The code must be well formed (a CodeWriter made it) and must outlive the index. kInvalidFile: the last
  // instruction goes on past the end.
  static Result<CodeIndex> Make(const Array<std::uint32_t>& code);

  std::size_t size() const { return starts_.size(); }
  const std::uint32_t* at(std::size_t i) const { return code_ + starts_[i]; }
  Opcode opcode(std::size_t i) const { return OpcodeOf(*at(i)); }
  // Where it may go on: none, one or two instructions.
  Span<const std::uint32_t> successors(std::size_t i) const {
    return {successors_.data() + 2 * i, successor_counts_[i]};
  }
  bool reachable(std::size_t i) const { return reachable_[i]; }
  // True for instruction 0 and what a jump goes to.
  bool starts_block(std::size_t i) const { return starts_block_[i]; }

 private:
  void FindReachable();

  const std::uint32_t* code_ = nullptr;
  Array<std::uint32_t> starts_;
  Array<std::uint32_t> successors_;  // two places an instruction
  Array<std::uint8_t> successor_counts_;
  Array<bool> reachable_;
  Array<bool> starts_block_;
};

constexpr bool IsRegister(OperandKind kind) {
  return kind == OperandKind::kRead || kind == OperandKind::kOptRead || kind == OperandKind::kReads ||
         kind == OperandKind::kWrite || kind == OperandKind::kOptWrite || kind == OperandKind::kKill;
}

// Calls visit(register) for each register that an instruction reads, and for each that it writes or kills.
template <typename Visit>
void ForEachRead(const std::uint32_t* instruction, Visit&& visit) {
  ForEachOperand(
      instruction, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
        const bool reads = operand.kind == OperandKind::kRead || operand.kind == OperandKind::kReads ||
                           (operand.kind == OperandKind::kOptRead && *words != kNone);
        for (std::uint32_t i = 0; reads && i < count; ++i) visit(words[i]);
      });
}
template <typename Visit>
void ForEachWrite(const std::uint32_t* instruction, Visit&& visit) {
  ForEachOperand(instruction, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
    const bool writes = operand.kind == OperandKind::kWrite || operand.kind == OperandKind::kKill ||
                        (operand.kind == OperandKind::kOptWrite && *words != kNone);
    if (writes) visit(*words);
  });
}

class RegisterSet {
 public:
  explicit RegisterSet(std::size_t registers) : words_((registers + 63) / 64) {}
  bool Has(std::uint32_t reg) const { return (words_[reg / 64] >> (reg % 64) & 1) != 0; }
  void Add(std::uint32_t reg) { words_[reg / 64] |= std::uint64_t{1} << (reg % 64); }
  void Remove(std::uint32_t reg) { words_[reg / 64] &= ~(std::uint64_t{1} << (reg % 64)); }
  // True when the set grew.
  bool Join(const RegisterSet& other);
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
      }
    }
  }

 private:
  Array<std::uint64_t> words_;
};

// A run of reachable instructions that is entered at its first and left at its last.
struct Block {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  // one past the last
  RegisterSet live_in;
  RegisterSet live_out;
};

// Blocks in the order of the code. `registers` bounds the numbers in it. kUnsupported: the sets would take
// more than 256 MiB.
Result<Array<Block>> FindLiveness(const CodeIndex& code, std::size_t registers);

}  // namespace rewire::tvm

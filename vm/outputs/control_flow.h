// SPDX-License-Identifier: Apache-2.0
// Basic blocks of a verified function, and which registers are live where.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "base/export.h"
#include "executable_format/module.h"

namespace rewire {

struct BasicBlock {
  std::uint32_t begin = 0;          // word of the first instruction
  std::uint32_t end = 0;            // one past the last word
  Array<std::uint32_t> successors;  // block indices; none after Ret and Fatal
};

// Blocks in order of their place; block 0 is the entry.
REWIRE_API Array<BasicBlock> FindBlocks(const Function& function);

// A set of registers.
class RegisterSet {
 public:
  explicit RegisterSet(std::uint32_t registers = 0) : words_((registers + 63) / 64) {}
  bool Has(std::uint32_t reg) const { return (words_[reg / 64] >> (reg % 64) & 1) != 0; }
  void Add(std::uint32_t reg) { words_[reg / 64] |= std::uint64_t{1} << (reg % 64); }
  void Remove(std::uint32_t reg) { words_[reg / 64] &= ~(std::uint64_t{1} << (reg % 64)); }
  // Adds all of `other`; true when that changed anything.
  bool Merge(const RegisterSet& other);
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
      }
    }
  }

 private:
  Array<std::uint64_t> words_;
};

// Liveness: a register is live where its value may still be read.
class Liveness {
 public:
  Liveness(const Function& function, const Array<BasicBlock>& blocks);

  // Calls visit(pc, live) for every instruction of the block, last one first, with the registers that are
  // live after it.
  template <typename Visit>
  void VisitBackward(std::uint32_t block, Visit visit) const;

 private:
  static void Transfer(const Function& function, std::uint32_t pc, RegisterSet* live);
  Array<std::uint32_t> InstructionsOf(std::uint32_t block) const;

  const Function& function_;
  const Array<BasicBlock>& blocks_;
  Array<RegisterSet> live_out_;
};

template <typename Visit>
void Liveness::VisitBackward(std::uint32_t block, Visit visit) const {
  RegisterSet live = live_out_[block];
  const Array<std::uint32_t> instructions = InstructionsOf(block);
  for (std::size_t i = instructions.size(); i-- > 0;) {
    visit(instructions[i], live);
    Transfer(function_, instructions[i], &live);
  }
}

}  // namespace rewire

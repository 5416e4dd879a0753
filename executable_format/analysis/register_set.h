// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/base/array.h"

namespace rewire {

// A set of registers, inputs (which are a function's first registers) or other small numbers, below a bound
// that is given when the set is made. One bit each.
class RegisterSet {
 public:
  explicit RegisterSet(std::uint32_t registers = 0) : words_(Words(registers)) {}
  // The words of 64 bits that a set of so many registers takes.
  static std::uint32_t Words(std::uint32_t registers) { return registers / 64 + (registers % 64 != 0); }

  // Made for no registers.
  bool empty() const { return words_.empty(); }
  bool Has(std::uint32_t reg) const { return (words_[reg / 64] >> (reg % 64) & 1) != 0; }
  void Add(std::uint32_t reg) { words_[reg / 64] |= std::uint64_t{1} << (reg % 64); }
  void Remove(std::uint32_t reg) { words_[reg / 64] &= ~(std::uint64_t{1} << (reg % 64)); }
  // Adds all of `other`, which is as large. True when that changed anything.
  bool Merge(const RegisterSet& other);

  // Calls visit(register) for each, lowest first.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) VisitBits(i, words_[i], visit);
  }
  // Calls visit(register) for each that `seen`, which is as large, lacks, and adds it there.
  template <typename Visit>
  void ForEachUnseen(RegisterSet* seen, Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t unseen = words_[i] & ~seen->words_[i];
      seen->words_[i] |= unseen;
      VisitBits(i, unseen, visit);
    }
  }

 private:
  template <typename Visit>
  static void VisitBits(std::size_t word, std::uint64_t bits, Visit& visit) {
    for (; bits != 0; bits &= bits - 1) {
      visit(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
    }
  }

  Array<std::uint64_t> words_;
};

}  // namespace rewire

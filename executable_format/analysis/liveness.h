// SPDX-License-Identifier: Apache-2.0
// Liveness: a register is live where its value may still be read. A kill counts as a write: what was there is
// of no use afterwards.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/analysis/register_set.h"
#include "rewire/executable_format/isa.h"

namespace rewire {

// From what is live after an instruction: what is live before it.
void StepBack(const std::uint32_t* instruction, RegisterSet* live);

// A register that an instruction names.
struct NamedRegister {
  std::uint32_t reg;
  RegisterUse use;
  bool live_after;  // the instruction
};

class Liveness {
 public:
  // Analyzes code whose blocks (FindBlocks) these are, and which names registers below `registers`. Borrows
  // both. The meter counts the work; once it is exhausted nothing else is valid.
  Liveness(Span<const std::uint32_t> code, const Array<BasicBlock>& blocks, std::uint32_t registers,
           WorkMeter* meter);

  const RegisterSet& live_out(std::uint32_t block) const { return live_out_[block]; }
  // Calls visit(pc, live) for every instruction of the block, last one first, with the registers that are
  // live after it. Returns those that are live where the block begins.
  template <typename Visit>
  RegisterSet VisitBackward(std::uint32_t block, Visit visit) const;
  // The same, and appends the registers that each instruction names, in the order of its operands. `begins`
  // gets where each instruction begins there.
  RegisterSet NameBackward(std::uint32_t block, Array<NamedRegister>* named,
                           Array<std::uint32_t>* begins) const;

 private:
  Array<std::uint32_t> InstructionsOf(std::uint32_t block) const;

  Span<const std::uint32_t> code_;
  const Array<BasicBlock>& blocks_;
  Array<RegisterSet> live_out_;
};

template <typename Visit>
RegisterSet Liveness::VisitBackward(std::uint32_t block, Visit visit) const {
  RegisterSet live = live_out_[block];
  const Array<std::uint32_t> instructions = InstructionsOf(block);
  for (std::size_t i = instructions.size(); i-- > 0;) {
    visit(instructions[i], live);
    StepBack(&code_[instructions[i]], &live);
  }
  return live;
}

}  // namespace rewire

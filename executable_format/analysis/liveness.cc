// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/analysis/liveness.h"

#include "rewire/executable_format/instruction.h"

namespace rewire {

void StepBack(const std::uint32_t* instruction, RegisterSet* live) {
  // Writes first, then reads: an instruction may read what it overwrites.
  ForEachRegister(instruction, [&](std::uint32_t reg, RegisterUse use) {
    if (use != RegisterUse::kRead) live->Remove(reg);
  });
  ForEachRegister(instruction, [&](std::uint32_t reg, RegisterUse use) {
    if (use == RegisterUse::kRead) live->Add(reg);
  });
}

RegisterSet Liveness::NameBackward(std::uint32_t block, Array<NamedRegister>* named,
                                   Array<std::uint32_t>* begins) const {
  return VisitBackward(block, [&](std::uint32_t pc, const RegisterSet& live) {
    begins->push_back(static_cast<std::uint32_t>(named->size()));
    ForEachRegister(&code_[pc], [&](std::uint32_t reg, RegisterUse use) {
      named->push_back({reg, use, live.Has(reg)});
    });
  });
}

Array<std::uint32_t> Liveness::InstructionsOf(std::uint32_t block) const {
  Array<std::uint32_t> instructions;
  for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end; pc += WordsOf(code_[pc])) {
    instructions.push_back(pc);
  }
  return instructions;
}

Liveness::Liveness(Span<const std::uint32_t> code, const Array<BasicBlock>& blocks, std::uint32_t registers,
                   WorkMeter* meter)
    : code_(code), blocks_(blocks) {
  const std::uint64_t words = RegisterSet::Words(registers);
  if (!meter->Spend(words * blocks.size())) return;
  live_out_.resize(blocks.size(), RegisterSet(registers));
  Array<Array<std::uint32_t>> predecessors(blocks.size());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    for (const std::uint32_t successor : blocks[i].successors()) predecessors[successor].push_back(i);
  }
  BlockQueue queue(blocks.size(), BlockQueue::Order::kLastBlockFirst);
  queue.PushAll();
  while (!queue.empty()) {
    const std::uint32_t block = queue.Pop();
    if (predecessors[block].empty()) continue;  // nobody asks what is live where it begins
    if (!meter->Spend(1 + words + blocks[block].end - blocks[block].begin)) return;
    const RegisterSet live = VisitBackward(block, [](std::uint32_t, const RegisterSet&) {});
    for (const std::uint32_t predecessor : predecessors[block]) {
      meter->Spend(1 + words);
      if (live_out_[predecessor].Merge(live)) queue.Push(predecessor);
    }
  }
}

}  // namespace rewire

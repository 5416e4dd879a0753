// SPDX-License-Identifier: Apache-2.0
#include "vm/outputs/control_flow.h"

#include "base/array.h"
#include "executable_format/instruction.h"

namespace rewire {
namespace {

// Calls visit(target pc) for each jump target of the instruction at `pc`.
template <typename Visit>
void ForEachTarget(const Function& function, std::uint32_t pc, Visit visit) {
  ForEachOperand(&function.code[pc],
                 [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
                   if (operand.kind == OperandKind::kTarget) visit(pc + *words);
                 });
}

}  // namespace

Array<BasicBlock> FindBlocks(const Function& function) {
  const auto size = static_cast<std::uint32_t>(function.code.size());
  Array<std::uint8_t> starts(size + 1, false);
  starts[0] = true;
  for (std::uint32_t pc = 0; pc < size; pc += WordsOf(function.code[pc])) {
    ForEachTarget(function, pc, [&](std::uint32_t target) { starts[target] = true; });
    const Flow flow = Info(OpcodeOf(function.code[pc])).flow;
    if (flow != Flow::kNext && flow != Flow::kCall) starts[pc + WordsOf(function.code[pc])] = true;
  }
  Array<BasicBlock> blocks;
  Array<std::uint32_t> block_at(size + 1, 0);
  for (std::uint32_t pc = 0; pc < size; ++pc) {
    if (!starts[pc]) continue;
    if (!blocks.empty()) blocks.back().end = pc;
    block_at[pc] = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back({pc, size, {}});
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    BasicBlock& block = blocks[i];
    std::uint32_t last = block.begin;
    while (last + WordsOf(function.code[last]) < block.end) last += WordsOf(function.code[last]);
    ForEachTarget(function, last,
                  [&](std::uint32_t target) { block.successors.push_back(block_at[target]); });
    const Flow flow = Info(OpcodeOf(function.code[last])).flow;
    if (flow == Flow::kNext || flow == Flow::kCall) {
      block.successors.push_back(static_cast<std::uint32_t>(i + 1));
    }
  }
  return blocks;
}

bool RegisterSet::Merge(const RegisterSet& other) {
  bool changed = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t merged = words_[i] | other.words_[i];
    changed = changed || merged != words_[i];
    words_[i] = merged;
  }
  return changed;
}

void Liveness::Transfer(const Function& function, std::uint32_t pc, RegisterSet* live) {
  // Writes first, then reads: an instruction may read what it overwrites.
  const auto each = [&](bool reads) {
    ForEachOperand(&function.code[pc],
                   [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                     switch (operand.kind) {
                       case OperandKind::kRead:
                       case OperandKind::kOptRead:
                       case OperandKind::kReads:
                         for (std::uint32_t i = 0; reads && i < count; ++i) {
                           if (words[i] != kNone) live->Add(words[i]);
                         }
                         break;
                       case OperandKind::kWrite:
                       case OperandKind::kOptWrite:
                       case OperandKind::kKill:
                         if (!reads && *words != kNone) live->Remove(*words);
                         break;
                       case OperandKind::kImm32:
                       case OperandKind::kImm64:
                       case OperandKind::kDType:
                       case OperandKind::kConstant:
                       case OperandKind::kFunction:
                       case OperandKind::kKernel:
                       case OperandKind::kDevice:
                       case OperandKind::kString:
                       case OperandKind::kTarget:
                       case OperandKind::kDims:
                         break;
                     }
                   });
  };
  each(false);
  each(true);
}

Array<std::uint32_t> Liveness::InstructionsOf(std::uint32_t block) const {
  Array<std::uint32_t> instructions;
  for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end; pc += WordsOf(function_.code[pc])) {
    instructions.push_back(pc);
  }
  return instructions;
}

Liveness::Liveness(const Function& function, const Array<BasicBlock>& blocks)
    : function_(function), blocks_(blocks), live_out_(blocks.size(), RegisterSet(function.register_count)) {
  Array<Array<std::uint32_t>> predecessors(blocks.size());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    for (const std::uint32_t successor : blocks[i].successors) predecessors[successor].push_back(i);
  }
  Array<std::uint32_t> work;
  Array<std::uint8_t> queued(blocks.size(), true);
  for (std::uint32_t i = 0; i < blocks.size(); ++i) work.push_back(i);
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    queued[block] = false;
    RegisterSet live = live_out_[block];
    const Array<std::uint32_t> instructions = InstructionsOf(block);
    for (std::size_t i = instructions.size(); i-- > 0;) Transfer(function, instructions[i], &live);
    for (const std::uint32_t predecessor : predecessors[block]) {
      if (live_out_[predecessor].Merge(live) && !queued[predecessor]) {
        queued[predecessor] = true;
        work.push_back(predecessor);
      }
    }
  }
}

}  // namespace rewire

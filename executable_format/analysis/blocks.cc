// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/analysis/blocks.h"

#include <algorithm>

#include "rewire/executable_format/instruction.h"

namespace rewire {
namespace {

// Whether what follows in the code may follow in a run.
bool FallsThrough(Opcode opcode) {
  const Flow flow = Info(opcode).flow;
  return flow == Flow::kNext || flow == Flow::kCall;
}

consteval std::size_t MostTargets() {
  std::size_t most = 0;
  for (const OpcodeInfo& info : kOpcodes) {
    std::size_t targets = 0;
    for (const OperandInfo& operand : info.operands) targets += operand.kind == OperandKind::kTarget;
    most = std::max(most, targets);
  }
  return most;
}
static_assert(MostTargets() <= std::extent_v<decltype(BasicBlock::next)>);

}  // namespace

Array<BasicBlock> FindBlocks(Span<const std::uint32_t> code) {
  const auto size = static_cast<std::uint32_t>(code.size());
  Array<std::uint8_t> starts(size + std::size_t{1});
  starts[0] = true;
  for (std::uint32_t pc = 0; pc < size; pc += WordsOf(code[pc])) {
    if (FallsThrough(OpcodeOf(code[pc]))) continue;  // has no targets
    ForEachTarget(&code[pc], pc, [&](std::uint32_t target) { starts[target] = true; });
    starts[pc + WordsOf(code[pc])] = true;
  }
  Array<BasicBlock> blocks;
  Array<std::uint32_t> block_at(size);
  for (std::uint32_t pc = 0; pc < size; ++pc) {
    if (!starts[pc]) continue;
    if (!blocks.empty()) blocks.back().end = pc;
    block_at[pc] = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back({pc, size, 0, {}});
  }
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    BasicBlock& block = blocks[i];
    std::uint32_t last = block.begin;
    while (last + WordsOf(code[last]) < block.end) last += WordsOf(code[last]);
    ForEachTarget(&code[last], last,
                  [&](std::uint32_t target) { block.next[block.next_count++] = block_at[target]; });
    if (FallsThrough(OpcodeOf(code[last]))) block.next[block.next_count++] = i + 1;
  }
  return blocks;
}

Array<std::uint8_t> BlocksReached(const Array<BasicBlock>& blocks) {
  Array<std::uint8_t> reached(blocks.size());
  Array<std::uint32_t> open;
  const auto reach = [&](std::uint32_t block) {
    if (!reached[block]) open.push_back(block);
    reached[block] = true;
  };
  if (!blocks.empty()) reach(0);
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    for (const std::uint32_t next : blocks[block].successors()) reach(next);
  }
  return reached;
}

void BlockQueue::Push(std::uint32_t block) {
  if (waits_[block]) return;
  waits_[block] = true;
  heap_.push_back(KeyOf(block));
  std::push_heap(heap_.begin(), heap_.end());
}

void BlockQueue::PushAll() {
  for (std::uint32_t block = 0; block < waits_.size(); ++block) Push(block);
}

std::uint32_t BlockQueue::Pop() {
  std::pop_heap(heap_.begin(), heap_.end());
  const std::uint32_t block = KeyOf(heap_.back());
  heap_.pop_back();
  waits_[block] = false;
  return block;
}

}  // namespace rewire

// SPDX-License-Identifier: Apache-2.0
#include "executable_format/import/liveness.h"

#include <fmt/format.h>

#include "base/array.h"
#include "executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

constexpr std::uint64_t kMaxSetBytes = std::uint64_t{256} << 20;

void StepBack(const std::uint32_t* instruction, RegisterSet& live) {
  ForEachWrite(instruction, [&](std::uint32_t reg) { live.Remove(reg); });
  ForEachRead(instruction, [&](std::uint32_t reg) { live.Add(reg); });
}

}  // namespace

Result<CodeIndex> CodeIndex::Make(const Array<std::uint32_t>& code) {
  CodeIndex index;
  index.code_ = code.data();
  Array<std::uint32_t> index_of(code.size());
  for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
    index_of[pc] = static_cast<std::uint32_t>(index.starts_.size());
    index.starts_.push_back(pc);
  }
  const std::size_t count = index.size();
  index.successors_.resize(2 * count);
  index.successor_counts_.resize(count);
  index.starts_block_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint8_t& successors = index.successor_counts_[i];
    const auto add = [&](std::size_t next) {
      index.successors_[2 * i + successors++] = static_cast<std::uint32_t>(next);
    };
    const Flow flow = Info(index.opcode(i)).flow;
    if (flow == Flow::kNext || flow == Flow::kCall) {
      if (i + 1 == count) return Malformed("the last instruction goes on past the end of the function");
      add(i + 1);
    }
    ForEachOperand(index.at(i), [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t) {
      if (operand.kind != OperandKind::kTarget) return;
      const std::uint32_t target = index_of[index.starts_[i] + *words];  // wraps for a jump backwards
      add(target);
      index.starts_block_[target] = true;
    });
  }
  if (count != 0) index.starts_block_[0] = true;
  index.FindReachable();
  return index;
}

void CodeIndex::FindReachable() {
  reachable_.resize(size());
  Array<std::uint32_t> open;
  const auto reach = [&](std::uint32_t i) {
    if (reachable_[i]) return;
    reachable_[i] = true;
    open.push_back(i);
  };
  if (size() != 0) reach(0);
  while (!open.empty()) {
    const std::uint32_t i = open.back();
    open.pop_back();
    for (std::uint32_t next : successors(i)) reach(next);
  }
}

bool RegisterSet::Join(const RegisterSet& other) {
  bool grew = false;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    grew = grew || (other.words_[i] & ~words_[i]) != 0;
    words_[i] |= other.words_[i];
  }
  return grew;
}

Result<Array<Block>> FindLiveness(const CodeIndex& code, std::size_t registers) {
  Array<std::uint32_t> begins;
  Array<std::uint32_t> block_of(code.size());
  bool open = false;
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    if (!code.reachable(i)) {
      open = false;
      continue;
    }
    if (!open || code.starts_block(i)) begins.push_back(i);
    block_of[i] = static_cast<std::uint32_t>(begins.size() - 1);
    const Flow flow = Info(code.opcode(i)).flow;
    open = flow == Flow::kNext || flow == Flow::kCall;
  }
  const std::uint64_t set_bytes = registers / 8 + 64;
  if (2 * begins.size() > kMaxSetBytes / set_bytes) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("{} blocks with {} registers are too many to analyse", begins.size(), registers));
  }
  Array<Block> blocks;
  for (std::uint32_t begin : begins) {
    std::uint32_t end = begin + 1;
    while (end < code.size() && code.reachable(end) && block_of[end] == blocks.size()) ++end;
    blocks.push_back({begin, end, RegisterSet(registers), RegisterSet(registers)});
  }
  // Backwards over the blocks until nothing changes: one round when nothing jumps back.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = blocks.size(); b-- > 0;) {
      Block& block = blocks[b];
      for (std::uint32_t next : code.successors(block.end - 1)) {
        block.live_out.Join(blocks[block_of[next]].live_in);
      }
      RegisterSet live = block.live_out;
      for (std::uint32_t i = block.end; i-- > block.begin;) StepBack(code.at(i), live);
      changed = block.live_in.Join(live) || changed;
    }
  }
  return blocks;
}

}  // namespace rewire::tvm

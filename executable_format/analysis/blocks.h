// SPDX-License-Identifier: Apache-2.0
// Basic blocks: runs of instructions that are entered at the first and left at the last.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"

namespace rewire {

struct BasicBlock {
  // The places of blocks that may follow this one: none after Ret and Fatal.
  Span<const std::uint32_t> successors() const { return {next, next_count}; }

  std::uint32_t begin = 0;  // word of the first instruction
  std::uint32_t end = 0;    // one past the last word
  std::uint32_t next_count = 0;
  std::uint32_t next[2];  // an instruction has at most two targets
};

// The blocks of a function's code in the order of their words; block 0 is the entry. The code is that of a
// verified function, or was made by a CodeWriter: jumps lead to instructions, and the last instruction does
// not go on with what follows it. Takes time linear in the code.
REWIRE_API Array<BasicBlock> FindBlocks(Span<const std::uint32_t> code);

// By block: whether a path leads to it from block 0.
Array<std::uint8_t> BlocksReached(const Array<BasicBlock>& blocks);

// A queue of blocks for an analysis that repeats until nothing changes any more. A block is in the queue at
// most once at a time. Pop returns the waiting block that is first in the order of the code, or the last one.
// So a block usually comes when everything that leads to it is settled. That holds if few jumps go against
// the order.
class BlockQueue {
 public:
  enum class Order : std::uint8_t { kFirstBlockFirst, kLastBlockFirst };

  BlockQueue(std::size_t blocks, Order order) : waits_(blocks), flip_(order == Order::kLastBlockFirst) {}
  // Has no effect for a block that waits already.
  REWIRE_API void Push(std::uint32_t block);
  void PushAll();
  bool empty() const { return heap_.empty(); }
  // Takes the next block of a queue that is not empty.
  REWIRE_API std::uint32_t Pop();

 private:
  // The key of a block in the heap: the largest comes out.
  std::uint32_t KeyOf(std::uint32_t block) const { return flip_ ? block : ~block; }

  Array<std::uint32_t> heap_;
  Array<std::uint8_t> waits_;
  bool flip_;
};

}  // namespace rewire

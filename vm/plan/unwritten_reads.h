// SPDX-License-Identifier: Apache-2.0
//
// Finds tensors that may be read before anything has been written to them.
//
// It goes through each block once. That decides about tensors that are made and written in one block. Only
// tensors that are unwritten at the end of a block are followed from block to block.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/vm/plan/origins.h"

namespace rewire {

class UnwrittenReads {
 public:
  explicit UnwrittenReads(OriginAnalysis* analysis);

  // The tensors to check: `number_of[origin]` is a tensor's number, or kNone for other origins.
  void Begin(Span<const std::uint32_t> number_of, std::uint32_t tensors);
  // Call for every reachable block, in any order: BeginBlock, then Visit with the state before each
  // instruction.
  void BeginBlock(std::uint32_t block);
  void Visit(std::uint32_t pc, const OriginAnalysis::State& state);
  // By tensor: whether it may be read unwritten. Empty if the analysis' meter is exhausted.
  Array<std::uint8_t> Finish();
  // True if a value was read that may be anything.
  bool everything_read() const { return everything_read_; }

 private:
  enum class Contents : std::uint8_t { kAsBefore, kUnwritten, kWritten };
  struct BlockFacts {
    Array<std::uint32_t> read;       // before the block made or wrote them
    Array<std::uint32_t> unwritten;  // made in the block, and not written at its end
    Array<std::uint32_t> written;
  };

  void EndBlock();
  void Read(OriginSet set);
  void ReadTensor(std::uint32_t tensor);
  void Set(std::uint32_t tensor, Contents contents);
  std::uint32_t NumberOf(OriginId id) const { return id < number_of_.size() ? number_of_[id] : kNone; }
  void Spread();

  OriginAnalysis& analysis_;
  OriginTable& table_;
  WorkMeter& meter_;
  Span<const std::uint32_t> number_of_;
  Array<std::uint8_t> flagged_;
  Array<BlockFacts> blocks_;
  bool everything_read_ = false;

  // The current block.
  std::uint32_t block_ = kNone;
  Array<Contents> contents_;     // by tensor
  Array<std::uint8_t> touched_;  // by tensor: is in `order_`
  Array<std::uint32_t> order_;
  // Counts tensors that were made. A set that was read since the last one need not be searched again.
  std::uint32_t version_ = 0;
  Array<std::uint32_t> looked_into_;  // by origin
  Array<OriginId> open_;
};

}  // namespace rewire

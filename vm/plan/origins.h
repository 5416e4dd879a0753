// SPDX-License-Identifier: Apache-2.0
//
// For every function, finds which instructions can have made the tensors that it returns.
//
// This is an abstract interpretation with allocation sites (instructions that make a tensor). The abstract
// value of a register is a set of origins. Sets are joined where paths meet. ADTs are followed through their
// allocation sites, and calls through a summary of the callee. Sets may be too large but never too small. So
// an origin that is not in the set cannot be in the register.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/analysis/forward_dataflow.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/plan/function_summary.h"
#include "rewire/vm/plan/origin_table.h"

namespace rewire {

// The analysis of one function, given what is known of the others.
class OriginAnalysis {
 public:
  // By function: its summary and the shape of its result.
  struct Callees {
    Span<const FunctionSummary> summaries;
    Span<const ResultShape> results;
  };
  using State = Array<OriginSet>;  // by register

  OriginAnalysis(const Module& module, std::uint32_t function, const Callees& callees, WorkMeter* meter);

  // Runs until nothing changes any more. Returns false if the meter is exhausted, or if the states of all
  // blocks take more than `max_state_entries` register entries; results are then invalid.
  bool Run(std::size_t max_state_entries);

  FunctionSummary Summary();
  // By leaf: its possible origins.
  const Array<OriginSet>& leaf_sets() const { return leaf_sets_; }
  bool MayBeAdt(const Origin& origin) const;

  // The state at the start of a block; Transfer moves it past one instruction. Unreachable blocks have no
  // state.
  const Array<BasicBlock>& blocks() const { return blocks_; }
  bool IsReached(std::uint32_t block) const { return flow_.IsReached(block); }
  const State& EntryState(std::uint32_t block) const { return flow_.entry(block); }
  void Transfer(std::uint32_t pc, State* state);

  // The arguments of an InvokePacked that are certainly written: the last ones, as long as none can be
  // an ADT that is flattened, and those that the import declares. Valid until the next Transfer; `state` is
  // the same in all calls until then.
  const Array<std::uint8_t>& WrittenArguments(std::uint32_t pc, const State& state);
  // The tensor that the instruction at `pc` makes. It has been passed by Transfer.
  OriginId MadeAt(std::uint32_t pc) const { return table_.Members(made_[pc])[0]; }

  // Calls visit(set) for the values whose contents the instruction at `pc` reads, and for the values inside
  // their ADTs.
  template <typename Visit>
  void VisitReads(std::uint32_t pc, const State& state, Visit visit);

  OriginTable& table() { return table_; }
  const OriginTable& table() const { return table_; }
  const Function& function() const { return function_; }
  const Module& module() const { return module_; }
  std::uint32_t index() const { return index_; }
  const ResultShape& result(std::uint32_t function) const { return callees_.results[function]; }
  WorkMeter& meter() { return meter_; }

 private:
  OriginSet MadeOfCall(std::uint32_t pc, const State& state);
  OriginSet Allocated(std::uint32_t pc);
  OriginSet Gathered(std::uint32_t pc, const State& state);
  void TransferReturn(std::uint32_t pc, const State& state);
  OriginSet ReachOf(Span<const std::uint32_t> registers, const State& state);
  OriginSet FieldOf(OriginSet set, std::uint32_t index);
  OriginSet CallNodes(std::uint32_t pc, std::uint32_t callee, Span<const std::uint32_t> args,
                      const State& state);
  void Reach(std::uint32_t block, const State& state);

  const Module& module_;
  const std::uint32_t index_;
  const Function& function_;
  const Callees callees_;
  WorkMeter& meter_;
  const ResultShape& result_;
  Array<BasicBlock> blocks_;
  ForwardDataflow<State> flow_;
  OriginTable table_;
  Array<OriginSet> leaf_sets_;
  Array<OriginSet> made_;  // by word of code: the tensor of the instruction there; kNoOrigins: none yet
  OriginSet scalar_;       // integers, storages: they need not be told apart, and constants neither
  OriginSet constant_;
  Array<std::uint8_t> written_;       // what WrittenArguments found
  std::uint32_t written_at_ = kNone;  // for this instruction
};

template <typename Visit>
void OriginAnalysis::VisitReads(std::uint32_t pc, const State& state, Visit visit) {
  const std::uint32_t* words = &function_.code[pc];
  const auto read = [&](std::uint32_t reg) { visit(state[reg]); };
  if (EffectsOf(words).kernel == 0) return ForEachContentsRead(words, read);
  const Span<const std::uint32_t> args = ListedRegisters(words);
  const Array<std::uint8_t>& written = WrittenArguments(pc, state);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!written[i]) read(args[i]);
  }
}

}  // namespace rewire

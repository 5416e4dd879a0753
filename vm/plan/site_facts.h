// SPDX-License-Identifier: Apache-2.0
//
// Collects the facts that decide which returned tensors may be made in the caller's memory. They are: which
// tensors may still be read when another is made, what is read before it is written, and by which leaves
// tensors leave.
//
// It goes once over the code, with the states of a finished OriginAnalysis and the live registers. For each
// origin it counts the live registers that hold it, and it only asks about tensors that leave the function.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/liveness.h"
#include "rewire/vm/plan/origins.h"
#include "rewire/vm/plan/unwritten_reads.h"

namespace rewire {

// An origin that makes a tensor and that some leaf can be.
struct OutputTensor {
  OriginId id = 0;
  std::uint32_t pc = 0;
  bool is_call = false;     // it is a leaf of the function that the Invoke at `pc` calls
  std::uint32_t exits = 0;  // leaves by which it leaves, directly or inside a value
  bool leaves_opaquely = false;
  bool reads_unwritten = false;
  bool outlives_itself = false;  // may still be read when the same instruction makes its next tensor
  bool among_many = false;       // too many origins to tell what may still be read when it is made
  // Ascending: other tensors of its leaves that may still be read when this one is made.
  Array<OriginId> live;
  // Inputs that may be read at or after the first write to the tensor. Has no registers if there are none.
  RegisterSet barred{0};
  bool all_barred = false;
};

// A leaf may hold these, besides the tensors that are made for it.
struct LeafContents {
  bool opaque = false;    // more than one tensor, and the type does not show it
  bool many = false;      // more origins than the analysis follows
  RegisterSet inputs{0};  // inputs of which it may be or hold a part
};

class SiteFacts {
 public:
  // With `pairs_of_all`, tensors that leave by several leaves are also compared with the others.
  SiteFacts(OriginAnalysis* analysis, bool pairs_of_all);

  // Returns false if the analysis' meter is exhausted; then nothing else is valid.
  bool Gather();

  const Array<LeafContents>& leaves() const { return leaves_; }
  // Returns the tensor with this origin, or null.
  const OutputTensor* Find(OriginId id) const {
    return id < tensor_of_.size() && tensor_of_[id] != kNone ? &tensors_[tensor_of_[id]] : nullptr;
  }

 private:
  void FindTensors();
  void FindExits();
  void FindParents();
  void WalkBlock(std::uint32_t block, const Liveness& liveness);
  void GatherAt(std::uint32_t pc, const OriginAnalysis::State& state);
  void GatherWrites(std::uint32_t pc, const OriginAnalysis::State& state);
  void NoteLive(OutputTensor* tensor);
  void NoteBarred(OutputTensor* tensor);
  Span<OutputTensor> TensorsAt(std::uint32_t pc);

  void Count(OriginSet set);
  void Uncount(OriginSet set);
  bool IsHeld(OriginId id);
  Span<const OriginId> ParentsOf(OriginId id) const {
    if (id + std::size_t{1} >= parent_begin_.size()) return {};
    return {parents_.data() + parent_begin_[id], parent_begin_[id + 1] - parent_begin_[id]};
  }

  OriginAnalysis& analysis_;
  OriginTable& table_;
  WorkMeter& meter_;
  const bool pairs_of_all_;
  const std::uint32_t input_count_;

  Array<OutputTensor> tensors_;            // by pc, then leaf of the callee
  Array<std::uint32_t> tensor_of_;         // by origin; kNone for others
  Array<Array<std::uint32_t>> leaves_of_;  // by tensor: the leaves that it may be
  Array<LeafContents> leaves_;

  // The tuples that may have an origin in a field: those of origin i start at parent_begin_[i].
  Array<std::uint32_t> parent_begin_;
  Array<OriginId> parents_;
  Array<std::uint8_t> holds_input_;  // by origin: true for a tuple with an input inside, at any depth
  Array<OriginId> input_ids_;        // by input; kNone where no register holds it

  // The live registers hold this at the current instruction.
  Array<std::uint32_t> held_;            // by origin: the number of registers whose sets contain it
  RegisterSet held_inputs_;              // inputs that registers hold by themselves
  std::uint64_t held_input_tuples_ = 0;  // tuples with an input inside that registers hold
  Array<std::uint32_t> visit_;           // by origin: the last search that visited it
  std::uint32_t search_ = 0;

  UnwrittenReads unwritten_;
};

}  // namespace rewire

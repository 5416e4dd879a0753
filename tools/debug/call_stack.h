// SPDX-License-Identifier: Apache-2.0
//
// The active calls of a run, as an observer sees them.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/tools/debug/places.h"
#include "rewire/vm/observer.h"

namespace rewire::tools {

struct StackFrame {
  Site site;  // the instruction that runs next; in a caller, the one that calls
  // The registers before that instruction. They stay valid until it has been executed.
  std::vector<RewireFFIAny> registers;
};

// The VM tells only of the innermost call. Registers of a caller cannot change while its callee runs, so a
// copy of them without references is enough.
class CallStack {
 public:
  // Called for every instruction of a run.
  void Arrive(const Observer::Instruction& instruction);
  void Clear() { frames_.clear(); }

  // Active calls; 0 if nothing runs.
  std::uint32_t depth() const { return static_cast<std::uint32_t>(frames_.size()); }
  // 0 is the innermost call. There must be one.
  const StackFrame& frame(std::uint32_t outwards) const { return frames_[frames_.size() - 1 - outwards]; }
  // The innermost call of a function; null if it is not active.
  const StackFrame* FrameOf(std::uint32_t function) const;

 private:
  std::vector<StackFrame> frames_;  // outermost first
};

}  // namespace rewire::tools

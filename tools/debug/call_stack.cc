// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/call_stack.h"

namespace rewire::tools {

void CallStack::Arrive(const Observer::Instruction& instruction) {
  frames_.resize(instruction.depth);
  StackFrame& frame = frames_.back();
  frame.site = {instruction.function, instruction.pc};
  frame.registers.assign(instruction.registers.begin(), instruction.registers.end());
}

const StackFrame* CallStack::FrameOf(std::uint32_t function) const {
  for (std::uint32_t i = 0; i < depth(); ++i) {
    if (frame(i).site.function == function) return &frame(i);
  }
  return nullptr;
}

}  // namespace rewire::tools

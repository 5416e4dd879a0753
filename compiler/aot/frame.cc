// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/frame.h"

#include "rewire/executable_format/instruction.h"

namespace rewire::aot {
namespace {

bool NeedsLive(Opcode opcode) {
  switch (opcode) {
    case Opcode::kInvoke:
    case Opcode::kInvokeClosure:
    case Opcode::kInvokePacked:
    case Opcode::kAllocStorage:
    case Opcode::kAllocTensor:
    case Opcode::kAllocTensorReg:
    case Opcode::kDeviceCopy:
      return true;
    default:
      return false;
  }
}

}  // namespace

FunctionFacts::FunctionFacts(const Function& function, WorkMeter* meter)
    : blocks(FindBlocks({function.code.data(), function.code.size()})) {
  const Liveness liveness({function.code.data(), function.code.size()}, blocks, function.register_count,
                          meter);
  for (std::uint32_t block = 0; block < blocks.size(); ++block) {
    block_at[blocks[block].begin] = block;
    live_in.push_back(liveness.VisitBackward(block, [&](std::uint32_t pc, const RegisterSet& live) {
      const std::uint32_t* instruction = &function.code[pc];
      if (!NeedsLive(OpcodeOf(*instruction))) return;
      RegisterSet others = live;
      const std::uint32_t dst = ChangedRegister(instruction);
      if (dst != kNone) others.Remove(dst);
      live_after.emplace(pc, others);
    }));
  }
}

}  // namespace rewire::aot

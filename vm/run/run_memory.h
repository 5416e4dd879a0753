// SPDX-License-Identifier: Apache-2.0
//
// RunMemory: the arrays of a run. They keep their room from run to run, unless memory is limited.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/memory/growing_array.h"
#include "rewire/vm/memory/spare_blocks.h"
#include "rewire/vm/outputs/output_slot.h"

namespace rewire {

// One active call. All registers lie on one contiguous stack. The stack may move, so a frame stores the
// offset of its registers.
struct Frame {
  const std::uint32_t* code;       // of the function
  const std::uint32_t* return_pc;  // where the caller continues; null in the frame of the invoked function
  std::uint32_t function;
  std::uint32_t base;          // first register
  std::uint32_t dst;           // the caller's register for the result
  std::uint32_t destinations;  // where the result's leaves go: an offset in RunMemory::destinations, or kNone
};

struct Workspace {
  void* block;
  std::uint64_t bytes;
};

struct RunMemory {
  explicit RunMemory(MemoryAccount* account)
      : blocks(account),
        stack(&blocks),
        frames(&blocks),
        args(&blocks),
        temporaries(&blocks),
        workspaces(&blocks),
        destinations(&blocks),
        leaf_values(&blocks) {}

  // Gives the room of all arrays to `blocks`. Before the next run `args` must be made again.
  void Release();
  // Gives back room that the last runs have not used.
  [[gnu::cold]] void Shrink();

  SpareBlocks blocks;                // what the arrays have released
  GrowingArray<RewireFFIAny> stack;  // registers of all frames
  GrowingArray<Frame> frames;
  GrowingArray<RewireFFIAny> args;         // of the kernel call that is being made; room for the longest call
  GrowingArray<RewireFFIAny> temporaries;  // objects that live until that call returns
  GrowingArray<Workspace> workspaces;      // its scratch memory
  GrowingArray<OutputSlot*> destinations;  // of all frames that carry bound outputs
  GrowingArray<RewireFFIAny> leaf_values;  // by node of the result's type, when a run ends
  bool ready = false;                      // `args`, and the kernels' state, are as a run needs them
};

}  // namespace rewire

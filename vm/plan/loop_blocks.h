// SPDX-License-Identifier: Apache-2.0
//
// LoopBlocks: the small blocks of memory that the loops of a function hold at once.
//
// A VM takes them from its allocator before the function begins (Interpreter::PrepareFrame). So no turn of a
// loop takes any, the first one included. They are the objects that registers hold: headers of tensors, and
// storages up to BlockPool::kMaxSmall. Larger memory is taken when a tensor needs it, because a loop may not
// be reached at all.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/program.h"

namespace rewire {

struct LoopBlocks {
  struct Class {
    std::uint64_t bytes;  // BlockPool::BlockBytes
    std::uint32_t count;
  };
  bool empty() const { return classes.empty(); }

  Array<Class> classes;           // each once, none with count 0
  std::uint32_t temporaries = 0;  // objects that live during one kernel call
};

// The blocks of each function's loops, by function. An upper bound for what registers hold, where a jump
// backwards makes the loop; what only ADTs hold, and what called functions take, is not counted. `fill` and
// `least_alignment` are those of the VM's ObjectHeap.
//
// An exhausted meter gives fewer blocks: then the first turns allocate.
REWIRE_API Array<LoopBlocks> FindLoopBlocks(const Module& module, StorageFill fill,
                                            std::uint32_t least_alignment, WorkMeter* meter);

}  // namespace rewire

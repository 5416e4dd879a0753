// SPDX-License-Identifier: Apache-2.0
//
// Reads of registers that hold nothing, which TVM's compiler makes.
//
// A clause of a nested match is compiled once for each way that leads to it. The later copies write registers
// of their own but read those of the first one. TVM's VM reads null there. Our verifier accepts no such read,
// so the importer stops the program where one would happen.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/import/flowgraph.h"

namespace rewire::tvm {

struct EmptyRead {
  std::uint32_t block;
  std::uint32_t pc;  // word of the instruction
  std::uint32_t reg;
};

// The first read in each block of a register that holds nothing whatever path led there: none has written it,
// or all have killed it since. Paths end at such a read. A register that holds something on some paths is
// none of these. Instructions that are not `needed`, which is by word, do not count. The result is in the
// order of the blocks, and of no use if the meter is exhausted.
Array<EmptyRead> FindEmptyReads(const Flowgraph& graph, const Array<bool>& needed, WorkMeter* meter);

}  // namespace rewire::tvm

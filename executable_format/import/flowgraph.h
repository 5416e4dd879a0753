// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/executable_format/analysis/blocks.h"

namespace rewire::tvm {

// A function's code with what is known of it. Registers below `inputs` are the function's inputs.
struct Flowgraph {
  Span<const std::uint32_t> code;
  std::uint32_t registers;
  std::uint32_t inputs;
  Array<BasicBlock> blocks;
  Array<std::uint8_t> reached;  // by block
};

}  // namespace rewire::tvm

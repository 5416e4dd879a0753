// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/limits.h>.
//
// The costs that compiling a model may have. A few hundred bytes of a stranger's model can ask for endless
// work.
#pragma once

#include <chrono>
#include <cstdint>

namespace rewire::compiler {

struct CompileLimits {
  // Units of work of lowering. A node costs about 64 units each time it is lowered, and more if expressions
  // of dimensions are long. Functions are inlined at each call, and loop bodies are lowered several times.
  // Beyond the limit: kStepLimit.
  std::uint64_t work = std::uint64_t{1} << 22;
  // Bytes of constants that are computed when compiling, in addition to four times the model's own weights.
  // Constants beyond it are computed when the program is linked or runs.
  std::uint64_t fold_bytes = std::uint64_t{1} << 30;
  // Time for computing constants: of one node, and of all together. A node that takes longer stays in the
  // program.
  std::chrono::nanoseconds fold_node_time = std::chrono::seconds(5);
  std::chrono::nanoseconds fold_time = std::chrono::minutes(2);
};

}  // namespace rewire::compiler

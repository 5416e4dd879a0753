// SPDX-License-Identifier: Apache-2.0
//
// DeepestStack: the bytes of stack that functions of a compiled program need. GCC tells the bytes of each
// function's frame, and which functions call which, with -fcallgraph-info=su.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "rewire/base/status.h"

namespace rewire::aot {

struct StackDepth {
  std::uint64_t bytes = 0;
  std::set<std::string> library;  // functions that are called and stand in no call graph
};

// The most bytes that a function whose name begins with `prefix` needs, with all that it calls. `graphs` are
// the texts of .ci files, by the files' names. What is called by a pointer is any function that `source`,
// which is C, names without calling it; in one chain of calls, each at most once. Each function that no graph
// has counts `library_bytes`.
//
// Errors: kInvalidArgument if a graph has no frames, no function begins so, or a kernel of kernels/embedded
// is missing. kUnsupported if functions call each other in a circle, or the size of a frame is known only
// when the program runs.
Result<StackDepth> DeepestStack(const std::map<std::string, std::string>& graphs, const std::string& prefix,
                                const std::string& source, std::uint64_t library_bytes);

}  // namespace rewire::aot

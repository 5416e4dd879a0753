// SPDX-License-Identifier: Apache-2.0
//
// GraphCheck: whether a graph is one that passes and emission may rely on. CompileOptions::check_passes asks
// after each pass, so that an error names the pass that broke the graph.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// One for a graph through all its passes: what was found of a call is kept until the call changes. The time
// of a check is near-linear in the nodes.
class GraphCheck {
 public:
  // Checks that
  // - each value has one producer, which stands before all that reads the value, blocks inside nodes included
  //   (check_reads.cc);
  // - the symbols of dimensions can be read where a size is computed (check_reads.cc);
  // - constants have the bytes of their types; nodes, sizes, results of blocks and carried values have types
  //   that fit each other (check_types.cc);
  // - calls fit the rows of their kernels, and outputs have the shapes that their kernels write
  //   (check_calls.cc, check_shapes.cc);
  // - each node reads values on its own side of host and device (check_sides.cc);
  // - nothing reads what was written over, and arenas keep tensors apart (check_memory.cc).
  // Errors: kInternal, with the node, the value, and what was expected and given.
  Status Check(const Graph& graph);

 private:
  Status CheckCalls(const Graph& graph, const Block& block);
  // The traits that know the kernel: the graph's, or those of the libraries that passes need.
  const KernelTraits& TraitsOf(const Graph& graph, const std::string& kernel);

  std::shared_ptr<const KernelTraits> of_passes_;       // null: not needed so far
  std::unordered_map<const Node*, std::size_t> calls_;  // those that fit their rows, with a hash of each
  std::unordered_set<std::string> missing_;             // kernels of the model that no library has
  bool first_ = true;
  // The model may have a reshape that does not fit, in a branch that no run takes.
  bool reshapes_fit_ = true;
};

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
//
// Continuation: where the results of a block of nodes are.
//
// Most blocks end in one place. A block may also end in an If whose branches give results of different rank.
// It then stays open: it ends once in each branch, each with results of known rank, and everything behind it
// is lowered into every branch. Joining the branches makes values of the If out of the results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// A node of the model that the compiler does not support.
struct Unsupported {
  std::string node;  // its name, or its first output
  std::string op_type;
  std::string domain;
  std::int64_t opset = 0;
  std::string reason;
};

struct Continuation {
  Node* split = nullptr;               // the If that the block ends in; null: the block ends here
  std::vector<Continuation> branches;  // the continuations of its branches, then and else
  // If the block ends here:
  Block* block = nullptr;
  std::vector<Value*> results;
  // A node that cannot be lowered for values of these ranks. The program fails if it gets here, and there are
  // no results.
  std::optional<Unsupported> failure;
};

// The places where the block ends, in order.
std::vector<Continuation*> EndsOf(Continuation* continuation);

bool AllFail(Continuation* continuation);

// True if the results of all ends are compatible, rank included. Ends that fail are compatible with anything.
bool SameRanks(Continuation* continuation);

}  // namespace rewire::compiler

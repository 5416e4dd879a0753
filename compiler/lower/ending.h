// SPDX-License-Identifier: Apache-2.0
// How a block of nodes ends: where its results are.
//
// Most blocks end in one place. One that ends in an If whose branches' results differ in rank may stay open:
// then it ends once in each branch, each with results of known rank, and what follows it is lowered into
// every one of them. Joining the branches makes values of the If out of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// A node of the model that the compiler has no code for.
struct Unsupported {
  std::string node;  // its name, or its first output
  std::string op_type;
  std::string domain;
  std::int64_t opset = 0;
  std::string reason;
};

struct Ending {
  Node* split = nullptr;         // the If that the block ends in; null: the block ends here
  std::vector<Ending> branches;  // the ends of its then and else
  // Where the block ends here:
  Block* block = nullptr;
  std::vector<Value*> results;
  // A node that cannot be lowered for values of these ranks: a program that comes here fails, and there are
  // no results.
  std::optional<Unsupported> failure;
};

// The places where it ends, in order.
std::vector<Ending*> EndsOf(Ending* ending);

bool AllFail(Ending* ending);

// Whether the results of all ends fit together, rank included. Ends that fail fit anything.
bool SameRanks(Ending* ending);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
//
// Pipelines: a graph that is cut into stages, each the program of one rank.
#pragma once

#include <cstdint>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Leaves the nodes of one stage in the graph, in the order of the graph. It runs behind the passes that
// choose kernels, so that results are those of the whole program to the bit. What earlier stages compute is
// received in front of them, and what later ones read is sent behind the node that makes it. A stage has the
// inputs that it reads and the results that it computes; what few operations make of inputs alone, such as a
// mask, each stage computes for itself. The cuts are those with which the slowest stage takes least time.
//
// Errors: kUnsupported if the graph has no place for so many cuts. A stage passes on tensors alone, so it
// does not end between nodes that share a sequence.
Status CutStage(Graph* graph, std::int64_t stages, std::int64_t stage, ShardReport* report);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
//
// Programs of several ranks, as CompileOptions::shards and ::stages ask for them.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Errors: kInvalidArgument for numbers of ranks or a rank that cannot be, and for options that do not go with
// several ranks.
Status CheckRanks(const CompileOptions& options);
// "1 of 4 shards", "0 of 2 stages"; empty for one rank.
std::string RankText(const CompileOptions& options);
// Makes the graph the program of one of several shards; does nothing for one. Run it in front of the passes,
// which then see the rank's sizes. Stages are cut behind passes (stages.h).
ShardReport ShardGraph(const CompileOptions& options, Graph* graph);

}  // namespace rewire::compiler

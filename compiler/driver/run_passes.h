// SPDX-License-Identifier: Apache-2.0
//
// Runs the passes over a graph as options ask for it, and checks the graph after each stage with
// CompileOptions::check_passes.
#pragma once

#include <functional>
#include <string>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/check/check_graph.h"

namespace rewire::compiler {

// Called with the name of each pass that has run, before the graph is checked; with "fold-constants" behind
// lowering. Tests plant faults there.
using AfterPass = std::function<void(const std::string& pass, Graph* graph)>;

// One for a graph through all its stages. Options and functions must stay.
class PassRun {
 public:
  PassRun(const CompileOptions& options, const AfterPass& after) : options_(options), after_(after) {}

  // Runs the passes. `each`, which may be empty, is called with a pass's name before and after it runs.
  // With CompileOptions::stages, the graph is cut behind the passes that choose kernels; `report`, which may
  // be null without, gets what that has found. Errors: kInternal if a pass broke the graph; the message names
  // it. kUnsupported if there are no places for so many stages.
  Status Run(Graph* graph, const std::function<void(const char* pass, bool done)>& each,
             ShardReport* report = nullptr);
  // Checks the graph behind another stage, if checks are asked for. `stage` is the message's subject:
  // "lowering the model".
  Status Check(const std::string& stage, const Graph& graph);

 private:
  bool checks() const;

  const CompileOptions& options_;
  const AfterPass& after_;
  GraphCheck check_;
};

}  // namespace rewire::compiler

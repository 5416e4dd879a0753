// SPDX-License-Identifier: Apache-2.0
//
// Constants of a model that become parameters of the executable, and what programs compute from them when
// they are linked.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/parameter_set.h"

namespace rewire::compiler {

// The choice of constants, over the rounds of compiling a model. Compiling never sees the elements of a
// parameter. Where the program depends on them, as on those of a shape, it stays a constant, and compiling
// starts again.
class ParameterChoice {
 public:
  explicit ParameterChoice(const CompileOptions& options) : options_(options) {}

  bool any() const { return options_.all_parameters || !options_.parameters.empty(); }
  // Whether the constant becomes a parameter.
  bool Has(const std::string& name, const HostTensor& tensor);
  // How many stay constants.
  std::size_t kept() const { return kept_.size(); }
  // Lets the parameters whose elements were wanted stay constants. Returns true if there are such.
  bool Keep(const Graph& graph);
  // Errors: kInvalidArgument if one that CompileOptions::parameters names is missing, or stays a constant
  // whose elements the host does not give.
  Status Check() const;

 private:
  const CompileOptions& options_;
  std::set<std::string> kept_;
  std::set<std::string> known_;  // all that may be parameters
};

// Lets the function `__init` compute what the graph reads of constants at load. Run it behind all passes.
void ComputeAtLinking(Graph* graph);

// The model's own elements of the parameters that the module has.
ParameterSet ParametersOf(const Graph& graph, const Module& module);

}  // namespace rewire::compiler

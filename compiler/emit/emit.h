// SPDX-License-Identifier: Apache-2.0
// From a Graph to a module: registers, storage, code, signatures, and notes that lead back to the model.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/ir/graph.h"
#include "executable_format/module.h"

namespace rewire::compiler {

struct EmitStatistics {
  std::size_t kernel_calls = 0;
  std::uint64_t constant_bytes = 0;
};

// The module's one function is "main". kUnsupported when a value's rank is not known where it has to be.
Result<Module> EmitModule(const Graph& graph, EmitStatistics* statistics = nullptr);

}  // namespace rewire::compiler

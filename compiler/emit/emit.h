// SPDX-License-Identifier: Apache-2.0
//
// Makes a module of a Graph: registers, storage, code, signatures, and notes that name the model's nodes.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/emit/value_names.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/executable_format/module.h"

namespace rewire::compiler {

struct EmitStatistics {
  std::size_t kernel_calls = 0;
  std::uint64_t constant_bytes = 0;
  std::vector<ValuePlace> values;  // of "main"
};

// The module has one function, "main". Errors: kUnsupported if the rank of a value is unknown where it is
// needed.
Result<Module> EmitModule(const Graph& graph, EmitStatistics* statistics = nullptr);

}  // namespace rewire::compiler

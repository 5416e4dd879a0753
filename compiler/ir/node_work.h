// SPDX-License-Identifier: Apache-2.0
//
// How much work a node's kernel is, by what the kernel's library declares (vm/kernel/work.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/prepare/kernel_work.h"

namespace rewire::compiler {

// The size that a dimension counts as; nullopt: it is not known.
using SizeOfDim = std::function<std::optional<std::int64_t>(const DimExpr& dim)>;

// nullopt if a rank or size is not known, or if the kernel's work is not declared or does not follow from
// shapes.
std::optional<CallWork> WorkOf(const Graph& graph, const Node& node, const SizeOfDim& size);

}  // namespace rewire::compiler

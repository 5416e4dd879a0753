// SPDX-License-Identifier: Apache-2.0
//
// Costs of computing and of exchanges, for the choice of what is split. The figures are those of a core of a
// server and of processes of one machine: they decide where both are far apart, and are no promise.
#pragma once

#include <cstdint>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// The size that a dimension counts as: its limit, or 1 if it is open, which is a step of a decoder.
std::int64_t CountedSize(const Graph& graph, const DimExpr& dim);
// The bytes of a value with such sizes.
double CountedBytes(const Graph& graph, const Value& value);
// Seconds of a node on one rank without a split: as long as its products take, or reading its weights.
double SecondsOf(const Graph& graph, const Node& node, std::uint64_t weight_bytes);
// Multiplications of a node, or its simple operations.
double OperationsOf(const Graph& graph, const Node& node);
// Seconds until all ranks have a value of so many bytes that is split, or that is a sum over the ranks.
double SecondsOfGather(double bytes, std::int64_t ranks);
double SecondsOfReduce(double bytes, std::int64_t ranks);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
// Quantises a float program: its convolutions and products with constant weights.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/quantize/activation_range.h"

namespace rewire::compiler {

// The values of `main` that such convolutions and products read, each once: their ranges must be known.
std::vector<Value*> ValuesToQuantize(const Graph& graph);

// Puts quantisation and dequantisation in front of these convolutions and products: U8 with a zero for what
// they read, S8 with a scale per channel for weights. Other passes then compute with the integers. What has
// no range stays as it is. Returns how many nodes now read integers.
std::size_t QuantizeProducts(
    Graph* graph, const std::function<std::optional<ActivationRange::Limits>(const Value*)>& range);

}  // namespace rewire::compiler

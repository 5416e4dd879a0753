// SPDX-License-Identifier: Apache-2.0
// Quantizes a float program: its convolutions and products with constant weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/quantize/activation_range.h"

namespace rewire::compiler {

// A node with constant f32 weights.
struct FloatProduct {
  Node* node = nullptr;
  std::int64_t axis = 0;  // of the weights: that with a scale each
  std::string reason;     // why it stays float; empty if it can be quantized
};

// All such nodes, in the graph's order, which is the same for a copy.
std::vector<FloatProduct> FloatProducts(const Graph& graph);

// For each product the limits of what it reads. Products without limits stay float.
using ProductLimits = std::vector<std::optional<ActivationRange::Limits>>;

// If the range has a scale that floats can hold.
bool HasScale(const ActivationRange::Limits& limits);

// Puts quantization and dequantization in front of products: U8 with a zero for what they read, S8 with a
// scale per channel for weights. Other passes then compute with the integers.
void QuantizeProducts(Graph* graph, const std::vector<FloatProduct>& products, const ProductLimits& limits);

// Leaves the products as they are, and puts copies behind them that read the same in 8 bits. Gives their
// outputs; null for products without limits.
std::vector<Value*> QuantizeBeside(Graph* graph, const std::vector<FloatProduct>& products,
                                   const ProductLimits& limits);

}  // namespace rewire::compiler

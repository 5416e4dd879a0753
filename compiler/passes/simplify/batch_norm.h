// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization as a factor and a term for each channel: (x - mean) / sqrt(variance + epsilon) * scale
// + bias.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Both as constants [channels]. They are constants at load if one of those that they are made of is. Null:
// factors of 1, terms of 0.
struct AffineConstants {
  Value* factor = nullptr;
  Value* term = nullptr;
};

// The factors and terms of a node of the kernel rewire.batch_norm, for `channels` channels. Nothing if scale,
// bias, mean and variance are not all constants of f32.
std::optional<AffineConstants> AffineOfBatchNorm(const Node& node, std::int64_t channels, Graph* graph);

}  // namespace rewire::compiler

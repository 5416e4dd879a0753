// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization as a factor and a term for each channel: (x - mean) / sqrt(variance + epsilon) * scale
// + bias.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

struct Affine {
  std::vector<float> factor, term;
};

// The factors and terms of a node of the kernel rewire.batch_norm, for `channels` channels. Nothing if scale,
// bias, mean and variance are not all constants of f32.
std::optional<Affine> AffineOfBatchNorm(const Node& node, std::int64_t channels);

}  // namespace rewire::compiler

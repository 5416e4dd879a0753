// SPDX-License-Identifier: Apache-2.0
// A model on two ranks beside the same in one process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {

struct SplitModel {
  std::string layers;  // how they are split, in their order: "columns rows"; "-" for one that is whole
  ShardReport report;
  Exchanged exchanged;
};

// Checks that on two ranks the model gives the same within `most`, and that each has as much of the split
// weights as the other. `caches` are the inputs that are split, along axis 1.
SplitModel CheckSplit(const onnx::ModelProto& model, const NamedTensors& inputs, double most = 1e-4,
                      const std::vector<std::string>& caches = {});

// The layers of CheckSplit.
std::string SplitOf(const onnx::ModelProto& model, const NamedTensors& inputs, double most = 1e-4,
                    const std::vector<std::string>& caches = {});

// x of so many tokens, random.
NamedTensors Tokens(std::int64_t length);

}  // namespace rewire::test

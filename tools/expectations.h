// SPDX-License-Identifier: Apache-2.0
// --expect: outputs compared with what they should be.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/compare.h"
#include "tools/outputs.h"

namespace rewire::tools {

struct OutputComparison {
  std::string output;    // "scores"; of a tree, the leaf too: "tree.1.0"
  std::string expected;  // where from: "y.npy", "all.npz:y"; else "the value expected"
  Comparison comparison;
};

// One comparison for each tensor that the bindings expect. A wrong output is no error: see Comparison.
// Outputs that are compared become used.
Result<std::vector<OutputComparison>> CompareOutputs(const Function& function,
                                                     const std::vector<std::string>& bindings,
                                                     const Tolerance& tolerance,
                                                     std::vector<Output>* outputs);

nlohmann::ordered_json ComparisonJson(const OutputComparison& comparison);

}  // namespace rewire::tools

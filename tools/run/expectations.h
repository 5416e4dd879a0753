// SPDX-License-Identifier: Apache-2.0
//
// --expect: compares outputs with expected values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/run/compare.h"
#include "rewire/tools/run/outputs.h"

namespace rewire::tools {

struct OutputComparison {
  std::string output;    // "scores"; of a tree, the leaf too: "tree.1.0"
  std::string expected;  // its source: "y.npy", "all.npz:y", or "the value expected"
  Comparison comparison;
};

// Makes one comparison for each tensor that the bindings expect. A wrong output is no error; see Comparison.
// Compared outputs are marked as used. Relative paths of files begin at `folder`, or at the working
// directory.
Result<std::vector<OutputComparison>> CompareOutputs(const Function& function,
                                                     const std::vector<std::string>& bindings,
                                                     const Tolerance& tolerance, std::vector<Output>* outputs,
                                                     const std::string& folder = {});

nlohmann::ordered_json ComparisonJson(const OutputComparison& comparison);

}  // namespace rewire::tools

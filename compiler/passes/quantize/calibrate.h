// SPDX-License-Identifier: Apache-2.0
// Calibration: runs the float program on samples, and quantizes it by the ranges seen, as far as its outputs
// stay near.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/quantize/sample_runs.h"

namespace rewire::compiler {

// The effects of a lower precision on a graph.
struct CalibrationReport {
  std::vector<ProductPrecision> products;
  std::vector<OutputMovement> movement;
  std::string unmeasured;  // why the movement is not known; empty if it is
};

// Checks the samples and quantizes the graph. `progress` is told what begins.
//
// Errors: kInvalidArgument for samples that do not fit the inputs, for a limit that is no number, and for
// names that no product has. Also those of running the float program.
Result<CalibrationReport> QuantizeBySamples(Graph* graph, const Calibration& calibration,
                                            const Building& building,
                                            const std::function<void(const std::string&)>& progress);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
// Lets a float graph compute its products by constant weights in bf16, and reports what that does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/quantize/calibrate.h"

namespace rewire::compiler {

// Sets Graph::bf16. Runs copies of the graph in f32 and in bf16 on the samples, or on random inputs if there
// are none, and compares the outputs. The report lists the graph's products with constant weights;
// FindBf16Products completes them. `progress` is told what begins.
//
// Errors: kInvalidArgument for samples that do not fit the inputs. Also those of running the program on
// samples. If it does not run with random inputs, the report says so.
Result<CalibrationReport> UseBf16(Graph* graph, const Calibration& calibration, const Building& building,
                                  const std::function<void(const std::string&)>& progress);

// Marks the products of the report that compute in bf16 in the graph as the passes have left it, and says of
// the others why not.
void FindBf16Products(const Graph& graph, std::vector<ProductPrecision>* products);

}  // namespace rewire::compiler

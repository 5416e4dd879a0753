// SPDX-License-Identifier: Apache-2.0
// The samples of a calibration as inputs of single calls.
#pragma once

#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/vm/value.h"

namespace rewire::compiler {

// The inputs of each call, in the order of the graph's inputs.
using Calls = std::vector<std::vector<rewire::Value>>;

// Errors: kInvalidArgument for samples that do not fit the inputs.
Result<Calls> ReadCalls(const Graph& graph, const std::vector<CalibrationData>& data);

// One call with random inputs: floats from -1 to 1, integers from 0 to 9. Dimensions that the model leaves
// open have `size`, but at most their limit, and 1 where they come first of several. The same graph always
// gets the same inputs. Errors: kUnsupported for inputs that are no tensors of numbers.
Result<Calls> RandomCalls(const Graph& graph, std::int64_t size);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
// How exact each product is in 8 bits, by itself.
#pragma once

#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/passes/quantize/quantize_products.h"
#include "rewire/compiler/passes/quantize/sample_runs.h"

namespace rewire::compiler {

// For each product the L2 norm of how far its output moves, by that of the output, over all samples, if it
// alone has 8 bits. Infinite where that is no number; NaN for products without limits.
Result<std::vector<double>> NoiseOfProducts(const Graph& graph, const ProductLimits& limits,
                                            const Calls& calls, const Building& building);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
// The ranges of what products read, as samples show them.
#pragma once

#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/passes/quantize/quantize_products.h"
#include "rewire/compiler/passes/quantize/sample_runs.h"

namespace rewire::compiler {

struct ProductRanges {
  ProductLimits limits;      // none for products that stay float, or whose range has no scale
  std::vector<double> work;  // multiplications of each product over all samples, about
};

Result<ProductRanges> RangesOfProducts(const Graph& graph, const std::vector<FloatProduct>& products,
                                       CalibrationMethod method, const Calls& calls,
                                       const Building& building);

}  // namespace rewire::compiler

// SPDX-License-Identifier: Apache-2.0
// Finds which products stay float so that no output moves too far.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/passes/quantize/compared_outputs.h"
#include "rewire/compiler/passes/quantize/ranges_of_products.h"

namespace rewire::compiler {

// Everything given must stay.
class FloatProductsSearch {
 public:
  FloatProductsSearch(const Graph& graph, const ProductRanges& ranges, const std::vector<double>& noise,
                      const ComparedOutputs& outputs, const Building& building,
                      const std::function<void(const std::string&)>& progress)
      : graph_(graph),
        ranges_(ranges),
        noise_(noise),
        outputs_(outputs),
        building_(building),
        progress_(progress) {}

  struct Found {
    ProductLimits limits;  // none for products that stay float
    std::vector<OutputMovement> movement;
    double worst = 0;  // of the movements
  };
  // `most`: as Calibration::max_error.
  Result<Found> Run(double most) const;

 private:
  Result<Found> Try(const std::vector<bool>& stays_float) const;
  Result<Found> WinBack(std::vector<bool> stays_float, Found found, double most) const;
  std::vector<std::size_t> Candidates() const;

  const Graph& graph_;
  const ProductRanges& ranges_;
  const std::vector<double>& noise_;
  const ComparedOutputs& outputs_;
  const Building& building_;
  const std::function<void(const std::string&)>& progress_;
};

}  // namespace rewire::compiler

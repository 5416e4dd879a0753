// SPDX-License-Identifier: Apache-2.0
//
// The rule says which inputs of a kernel of floats are factors of its products.
#pragma once

#include <string_view>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/contract/work_rule.h"

namespace rewire::names {

// No inputs for all other kernels.
constexpr InputRange FactorsOf(std::string_view kernel) {
  InputRange found;
  const auto look = [&](const auto& rules) {
    for (const WorkRule& rule : rules) {
      if (rule.kernel == kernel) found = rule.factors;
    }
  };
  look(kConvolutionWork);
  look(kProductWork);
  look(kRecurrentWork);
  return found;
}

}  // namespace rewire::names

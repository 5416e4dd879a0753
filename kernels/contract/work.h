// SPDX-License-Identifier: Apache-2.0
//
// The work of all stock kernels. The registries of the kernel libraries make the column of their rows from it
// (vm/kernel/work.h). All others read the rows, where kernels of other libraries have theirs, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/cost.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/signal.h"
#include "rewire/kernels/contract/work_rule.h"
#include "rewire/vm/kernel/work.h"

namespace rewire::names {

class WorkOfKernels {
 public:
  WorkOfKernels() {
    Add(kConvolutionWork);
    Add(kElementwiseCosts);
    Add(kGeneratorCosts);
    Add(kIndexingCosts);
    Add(kMovementCosts);
    Add(kNormalizationCosts);
    Add(kProductWork);
    Add(kQuantizationCosts);
    Add(kRecurrentWork);
    Add(kReductionCosts);
    Add(kSignalCosts);
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.stem < b.stem; });
  }

  // A kernel of a device does the same work as the CPU's. Empty rules if no list has the kernel.
  RewireKernelWork Find(std::string_view kernel) const {
    const std::string_view stem = Stem(kernel);
    const auto found =
        std::lower_bound(rows_.begin(), rows_.end(), stem,
                         [](const Row& row, std::string_view name) { return row.stem < name; });
    return found == rows_.end() || found->stem != stem ? RewireKernelWork{} : found->work;
  }

 private:
  struct Row {
    std::string_view stem;
    RewireKernelWork work;
  };

  template <std::size_t kCount>
  void Add(const Cost (&costs)[kCount]) {
    for (const Cost& cost : costs)
      rows_.push_back({Stem(cost.kernel), {nullptr, nullptr, cost.operations, nullptr}});
  }
  template <std::size_t kCount>
  void Add(const WorkRule (&rules)[kCount]) {
    for (const WorkRule& rule : rules)
      rows_.push_back({Stem(rule.kernel), {rule.products, rule.plain_products, rule.operations, rule.times}});
  }

  std::vector<Row> rows_;
};

}  // namespace rewire::names

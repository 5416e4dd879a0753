// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {

struct StockKernelsOptions {
  bool for_device = false;  // kernels that run on devices, too
  // Kernels whose results serve on this machine alone, too.
  bool not_portable = false;
};

// Returns the stock kernels. A library is opened when one of its names is looked up, because few models need
// more than the first: text and pictures bring large libraries along. A library that is missing shows as
// missing kernels.
KernelSet StockKernels(const StockKernelsOptions& options);

}  // namespace rewire::compiler

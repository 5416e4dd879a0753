// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/opened_kernels.h>.
#pragma once

#include <memory>

#include "rewire/base/export.h"

namespace rewire {

// Opens the libraries of stock kernels, with which Compile computes constants. While the object that is
// returned lives, Compile opens none of them. For processes that give up opening files before they compile a
// model that nobody trusts. A library that is missing shows as missing kernels.
REWIRE_API std::shared_ptr<const void> OpenStockKernels();

}  // namespace rewire

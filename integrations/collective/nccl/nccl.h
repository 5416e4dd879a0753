// SPDX-License-Identifier: Apache-2.0
//
// NCCL, opened by its name when a kernel first needs it.
#pragma once

#include "rewire/integrations/collective/nccl/nccl_abi.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

// Fails if NCCL is not installed, is too old or lacks a function. It stays open until the process ends.
kernel::Status OpenNccl(const NcclFunctions** nccl);

// The failure of a function of NCCL's: its own words for it, and those for the last error of `comm`.
kernel::Status NcclFailure(const NcclFunctions& nccl, const char* function, int result, void* comm);

}  // namespace rewire::collective

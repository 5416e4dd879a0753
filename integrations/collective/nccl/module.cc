// SPDX-License-Identifier: Apache-2.0
//
// The symbol that the loader looks for in the shared library.
#include "rewire/integrations/collective/nccl/collective_nccl.h"
#include "rewire/vm/kernel/work.h"

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelWorkTable __rewire_kernel_table;
const RewireKernelWorkTable __rewire_kernel_table = {*RewireNcclKernels(), RewireWorkOf(RewireNcclKernels())};

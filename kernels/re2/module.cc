// SPDX-License-Identifier: Apache-2.0
//
// The symbols that the loader looks for in the shared library. They are not part of the static form, where
// tables of several libraries would have the same name.
#include "rewire/kernels/re2/kernels_re2.h"
#include "rewire/vm/kernel/work.h"

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelWorkTable __rewire_kernel_table;
const RewireKernelWorkTable __rewire_kernel_table = {*RewireRe2Kernels(), RewireWorkOf(RewireRe2Kernels())};

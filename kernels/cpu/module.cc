// SPDX-License-Identifier: Apache-2.0
// What the loader looks for in the shared library. Not part of the static form, where tables of several
// libraries would meet under one name.
#include "kernels/cpu/kernels_cpu.h"

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table;
const RewireKernelTable __rewire_kernel_table = *RewireCpuKernels();

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelWorkspaces __rewire_kernel_workspaces;
const RewireKernelWorkspaces __rewire_kernel_workspaces = *RewireCpuWorkspaces();

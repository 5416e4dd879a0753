/* SPDX-License-Identifier: Apache-2.0 */
/* The stock CPU kernels, for hosts that link them statically. */
#ifndef REWIRE_KERNELS_CPU_KERNELS_CPU_H_
#define REWIRE_KERNELS_CPU_KERNELS_CPU_H_

#include "vm/kernel/kernel.h"
#include "vm/kernel/workspace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels.md describes each. */
const RewireKernelTable* RewireCpuKernels(void);
/* What each of them takes from workspace(); static storage. */
const RewireKernelWorkspaces* RewireCpuWorkspaces(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_CPU_KERNELS_CPU_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/* The stock CPU kernels, for hosts that link them statically. */
#ifndef REWIRE_KERNELS_CPU_KERNELS_CPU_H_
#define REWIRE_KERNELS_CPU_KERNELS_CPU_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them, with their rows; static storage. docs/kernels.md describes each. */
const RewireKernelTable* RewireCpuKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_CPU_KERNELS_CPU_H_ */

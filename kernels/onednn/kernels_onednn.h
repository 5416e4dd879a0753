/* SPDX-License-Identifier: Apache-2.0 */
/* The stock kernels on oneDNN, for hosts that link them statically. */
#ifndef REWIRE_KERNELS_ONEDNN_KERNELS_ONEDNN_H_
#define REWIRE_KERNELS_ONEDNN_KERNELS_ONEDNN_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels.md describes each. */
const RewireKernelTable* RewireOneDnnKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_ONEDNN_KERNELS_ONEDNN_H_ */

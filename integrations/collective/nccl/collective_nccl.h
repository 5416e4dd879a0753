/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives on devices of CUDA's, over NCCL. */
#ifndef REWIRE_INTEGRATIONS_COLLECTIVE_NCCL_COLLECTIVE_NCCL_H_
#define REWIRE_INTEGRATIONS_COLLECTIVE_NCCL_COLLECTIVE_NCCL_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels-collective-device.md describes each. */
const RewireKernelTable* RewireNcclKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_INTEGRATIONS_COLLECTIVE_NCCL_COLLECTIVE_NCCL_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives over MPI. */
#ifndef REWIRE_INTEGRATIONS_COLLECTIVE_COLLECTIVE_MPI_H_
#define REWIRE_INTEGRATIONS_COLLECTIVE_COLLECTIVE_MPI_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels-collective.md describes each. */
const RewireKernelTable* RewireCollectiveKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_INTEGRATIONS_COLLECTIVE_COLLECTIVE_MPI_H_ */

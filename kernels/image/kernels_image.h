/* SPDX-License-Identifier: Apache-2.0 */
/* The stock kernels of encoded pictures. */
#ifndef REWIRE_KERNELS_IMAGE_KERNELS_IMAGE_H_
#define REWIRE_KERNELS_IMAGE_KERNELS_IMAGE_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels-image.md describes each. */
const RewireKernelTable* RewireImageKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_IMAGE_KERNELS_IMAGE_H_ */

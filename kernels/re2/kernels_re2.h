/* SPDX-License-Identifier: Apache-2.0 */
/* The stock kernels on RE2. */
#ifndef REWIRE_KERNELS_RE2_KERNELS_RE2_H_
#define REWIRE_KERNELS_RE2_KERNELS_RE2_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels-re2.md describes each. */
const RewireKernelTable* RewireRe2Kernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_RE2_KERNELS_RE2_H_ */

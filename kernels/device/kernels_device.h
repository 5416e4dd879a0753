/* SPDX-License-Identifier: Apache-2.0 */
/* The stock kernels of devices. */
#ifndef REWIRE_KERNELS_DEVICE_KERNELS_DEVICE_H_
#define REWIRE_KERNELS_DEVICE_KERNELS_DEVICE_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of all of them; static storage. docs/kernels-device.md describes each. */
const RewireKernelTable* RewireDeviceKernels(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_KERNELS_DEVICE_KERNELS_DEVICE_H_ */

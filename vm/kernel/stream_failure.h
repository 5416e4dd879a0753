/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/stream_failure.h>. */
/* Failures of a device's work that the device itself does not notice. Plain C.
 *
 * A kernel gives its work to a stream and returns. Work that waits for another process may then never end, or
 * end without a result, and the driver calls that a success. Who gave such work watches it, and says by the
 * function below that it has failed.
 *
 * The function stands behind RewireDeviceApi in memory, if the struct's struct_size says so. It has a header
 * of its own because hardly any kernel needs it. A copy of a RewireDeviceApi sets struct_size to its own
 * size.
 */
#ifndef REWIRE_VM_KERNEL_STREAM_FAILURE_H_
#define REWIRE_VM_KERNEL_STREAM_FAILURE_H_

#include "rewire/vm/kernel/device_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireStreamFailureApi {
  RewireDeviceApi device;

  /* Optional. The work that `stream` has so far has failed. The next `synchronize` of the stream waits as it
   * always does, and then returns REWIRE_DEVICE_FAILED, once. `error` then gives `message`, which is copied.
   * So the run fails whose stream it is. Of several failures before a wait, the first one counts. Any thread
   * may call it. The stream must not be destroyed meanwhile. */
  int (*fail_stream)(void* context, DLDevice device, void* stream, const char* message);
} RewireStreamFailureApi;

/* The struct with fail_stream, or NULL if the device does not have it. */
static inline const RewireStreamFailureApi* RewireStreamFailuresOf(const RewireDeviceApi* api) {
  const RewireStreamFailureApi* with = (const RewireStreamFailureApi*)api;
  return api->struct_size < sizeof(RewireStreamFailureApi) || with->fail_stream == NULL ? NULL : with;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_STREAM_FAILURE_H_ */

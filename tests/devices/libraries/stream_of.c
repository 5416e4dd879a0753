/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel library of the tvm-ffi ABI that would launch work by itself. It gives the stream that it would
 * use. */
#include "rewire/vm/kernel/kernel.h"

void* TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

/* The stream for a tensor's device, as a number. */
__attribute__((visibility("default"))) int __tvm_ffi_stream_of(void* handle, const RewireFFIAny* args,
                                                               int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)num_args;
  const DLDevice device = RewireTensorOf(&args[0])->device;
  result->type_index = kRewireFFIInt;
  result->v_int64 = (int64_t)(intptr_t)TVMFFIEnvGetStream((int32_t)device.device_type, device.device_id);
  return 0;
}

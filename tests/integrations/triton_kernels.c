/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the test of Triton's backend. */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <stdint.h>
#include <time.h>

#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

static const DLTensor* Tensors(const RewireFFIAny* args, int32_t num_args, DLTensor** y) {
  const DLTensor* const x = num_args == 2 ? RewireTensorOf(&args[0]) : NULL;
  *y = num_args == 2 ? RewireTensorOf(&args[1]) : NULL;
  if (x == NULL || *y == NULL) __rewire_kernel_api->set_error("TypeError", "two tensors are expected");
  return *y == NULL ? NULL : x;
}

/* y = the addresses of y and of x: i64[2]. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_triton_addresses(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                    RewireFFIAny* result) {
  (void)handle, (void)result;
  DLTensor* y = NULL;
  const DLTensor* const x = Tensors(args, num_args, &y);
  if (x == NULL) return -1;
  ((int64_t*)y->data)[0] = (int64_t)(uintptr_t)y->data;
  ((int64_t*)y->data)[1] = (int64_t)(uintptr_t)x->data;
  return 0;
}

/* y = x + x for f32[N, 4]. Fails if an element is negative. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_triton_double(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                 RewireFFIAny* result) {
  (void)handle, (void)result;
  DLTensor* y = NULL;
  const DLTensor* const x = Tensors(args, num_args, &y);
  if (x == NULL) return -1;
  for (int64_t i = 0; i < x->shape[0] * 4; ++i) {
    const float element = ((const float*)x->data)[i];
    if (element < 0) {
      __rewire_kernel_api->set_error("ValueError", "an element is negative");
      return -1;
    }
    ((float*)y->data)[i] = element + element;
  }
  return 0;
}

/* y = x + before for i64[N, 1], after 30 ms. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_triton_slow_add(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                   RewireFFIAny* result) {
  (void)handle, (void)result;
  const DLTensor* const x = num_args == 3 ? RewireTensorOf(&args[0]) : NULL;
  const DLTensor* const before = num_args == 3 ? RewireTensorOf(&args[1]) : NULL;
  DLTensor* const y = num_args == 3 ? RewireTensorOf(&args[2]) : NULL;
  if (x == NULL || before == NULL || y == NULL) {
    __rewire_kernel_api->set_error("TypeError", "three tensors are expected");
    return -1;
  }
  const struct timespec pause = {0, 30000000};
  nanosleep(&pause, NULL);
  for (int64_t i = 0; i < x->shape[0]; ++i)
    ((int64_t*)y->data)[i] = ((const int64_t*)x->data)[i] + ((const int64_t*)before->data)[i];
  return 0;
}

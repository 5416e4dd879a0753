/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in C over Rewire's kernel table alone. */
#include <string.h>

#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

REWIRE_KERNEL_EXPORT int __tvm_ffi_plain_add(void* handle, const RewireFFIAny* args, int32_t num_args,
                                             RewireFFIAny* result) {
  (void)handle;
  if (num_args != 2) {
    __rewire_kernel_api->set_error("TypeError", "plain_add takes two integers");
    return -1;
  }
  result->type_index = kRewireFFIInt;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}

/* Fails without saying why. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_plain_silent(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                RewireFFIAny* result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  return -1;
}

/* y = x + by for a tensor, a scalar and a tensor. It checks its arguments as compiled code does. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_plain_shift(void* handle, const RewireFFIAny* args, int32_t num_args,
                                               RewireFFIAny* result) {
  (void)handle, (void)result;
  const DLTensor* x = num_args == 3 ? RewireTensorOf(&args[0]) : NULL;
  DLTensor* y = num_args == 3 ? RewireTensorOf(&args[2]) : NULL;
  if (x == NULL || y == NULL || args[1].type_index != kRewireFFIInt) {
    __rewire_kernel_api->set_error("TypeError", "Mismatched type on argument #1 when calling plain_shift");
    return -1;
  }
  for (int64_t i = 0; i < y->shape[0]; ++i)
    ((float*)y->data)[i] = ((const float*)x->data)[i] + (float)args[1].v_int64;
  return 0;
}

/* The plain_add of the table: another one is hidden by it. */
static int TableAdd(void* handle, const RewireFFIAny* args, int32_t num_args, RewireFFIAny* result) {
  const int status = __tvm_ffi_plain_add(handle, args, num_args, result);
  if (status == 0) result->v_int64 += 1000;
  return status;
}

static const RewireKernelEntry kEntries[] = {{"plain_add", TableAdd, 0}, {"plain.of_table", TableAdd, 0}};
REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table = {sizeof(RewireKernelTable), 2, kEntries,
                                                                      NULL};

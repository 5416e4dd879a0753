/* SPDX-License-Identifier: Apache-2.0 */
#include <rewire/vm/kernel/kernel.h>

REWIRE_KERNEL_LIBRARY;

/* y = factor * every step-th row of x */
REWIRE_KERNEL_EXPORT int __tvm_ffi_acme_every(void* handle, const RewireFFIAny* args, int32_t count,
                                              RewireFFIAny* result) {
  (void)handle, (void)result;
  if (count != 4) {
    __rewire_kernel_api->set_error("TypeError", "acme_every: expected x, step, factor and y");
    return -1;
  }
  const DLTensor *x = RewireTensorOf(&args[0]), *y = RewireTensorOf(&args[3]);
  const int64_t step = *(const int64_t*)RewireTensorOf(&args[1])->data;
  const float factor = *(const float*)RewireTensorOf(&args[2])->data;
  const int64_t columns = x->shape[1];
  for (int64_t row = 0; row < y->shape[0]; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      ((float*)y->data)[row * columns + i] = factor * ((const float*)x->data)[row * step * columns + i];
    }
  }
  return 0;
}

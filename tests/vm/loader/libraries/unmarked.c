/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's target "c" writes this for a model of several kernels: functions of the classic ABI, and no mark of
 * it. */
#include <dlpack/dlpack.h>
#include <stdint.h>

#define KERNEL(name)                                                                                \
  __attribute__((visibility("default"))) int32_t name(void* args, int32_t* codes, int32_t num_args, \
                                                      void* result, int32_t* result_code, void* resource)
#define UNUSED (void)codes, (void)result, (void)result_code, (void)resource

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code, int bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* pointer);

KERNEL(tvmgen_default_fused_add) {
  UNUSED;
  DLTensor** tensors = (DLTensor**)args;
  if (num_args != 3) return -1;
  const float *x = tensors[0]->data, *w = tensors[1]->data;
  float* scratch = TVMBackendAllocWorkspace(1, 0, 8, 2, 32);
  if (scratch == 0) return -1;
  for (int i = 0; i < 2; ++i) scratch[i] = x[i] + w[i];
  for (int i = 0; i < 2; ++i) ((float*)tensors[2]->data)[i] = scratch[i];
  return TVMBackendFreeWorkspace(1, 0, scratch);
}

KERNEL(vm_mod_fused_add) {
  return tvmgen_default_fused_add(args, codes, num_args, result, result_code, resource);
}

/* No kernel: names of compilers and libraries begin so. */
KERNEL(_fused_add) { return vm_mod_fused_add(args, codes, num_args, result, result_code, resource); }

/* SPDX-License-Identifier: Apache-2.0 */
/* A library that TVM up to 0.20 exported with one module of the kind KIND beside its functions. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void* __tvm_module_ctx = 0;
EXPORT int kernel(void* args) { return args == 0; }

EXPORT const struct __attribute__((packed)) {
  uint64_t bytes, entries, length;
  char kind[sizeof(KIND) - 1];
  uint64_t payload;
} __tvm_dev_mblob = {sizeof(__tvm_dev_mblob) - sizeof(uint64_t), 1, sizeof(KIND) - 1, KIND, 0};

/* SPDX-License-Identifier: Apache-2.0 */
/* A library that a current TVM exported with a Relax executable and its own functions, in the layout of
   vm/loader/library_bin.h. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int __tvm_ffi_add(void* handle, const void* args, int32_t num_args, void* result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  return 0;
}

EXPORT const struct __attribute__((packed)) {
  uint64_t bytes;
  uint64_t starts, start[3];
  uint64_t imports, import[1];
  uint64_t length;
  char kind[18];
  uint64_t size;
  char content[4];
  uint64_t own_length;
  char own[4];
} __tvm_ffi__library_bin = {sizeof(__tvm_ffi__library_bin) - sizeof(uint64_t),
                            3,
                            {0, 1, 1},
                            1,
                            {1},
                            18,
                            "relax.VMExecutable",
                            4,
                            "code",
                            4,
                            "_lib"};

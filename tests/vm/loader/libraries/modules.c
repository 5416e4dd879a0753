/* SPDX-License-Identifier: Apache-2.0 */
/* A library with an imported module of the kind "metal" in its __tvm_ffi__library_bin. */
#include "rewire/vm/kernel/ffi_abi.h"

#define U64(n) n, 0, 0, 0, 0, 0, 0, 0

__attribute__((visibility("default"))) const unsigned char __tvm_ffi__library_bin[] = {
    U64(88),                              /* bytes that follow */
    U64(3),  U64(0), U64(1), U64(1),      /* module 0 has import 0, module 1 none */
    U64(1),  U64(1),                      /* import 0 is module 1 */
    U64(4),  '_',    'l',    'i',    'b', /* module 0 */
    U64(5),  'm',    'e',    't',    'a', 'l', U64(7), 1, 2, 3, 4, 5, 6, 7, /* module 1 */
};

__attribute__((visibility("default"))) int __tvm_ffi_f(void* handle, const RewireFFIAny* args,
                                                       int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  return 0;
}

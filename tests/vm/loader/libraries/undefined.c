/* SPDX-License-Identifier: Apache-2.0 */
/* Wants a function of the tvm-ffi runtime as an undefined symbol, as code of TVM 0.24 and later does. With
 * -DWANTED=... another one. With -DCALLS_BACK it also has a variable for the address of one that nobody
 * provides. */
#include "rewire/vm/kernel/ffi_abi.h"

#ifndef WANTED
#define WANTED TVMFFIErrorSetRaisedFromCStrParts
#endif

#ifdef CALLS_BACK
__attribute__((visibility("default"))) void* __TVMFunctionOfNobody = 0;
#endif

void WANTED(const char* kind, const char** parts, int32_t num_parts);

__attribute__((visibility("default"))) int __tvm_ffi_parts(void* handle, const RewireFFIAny* args,
                                                           int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  const char* parts[] = {"argument 0", 0, " of `parts()`", ": wrong"};
  WANTED("TypeError", parts, 4);
  return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A tvm-ffi kernel with documentation and metadata: functions that give short strings. */
#include <string.h>

#include "rewire/vm/kernel/ffi_abi.h"

#define EXPORT __attribute__((visibility("default")))

static int Text(const char* text, RewireFFIAny* result) {
  result->type_index = kRewireFFISmallStr;
  result->small_str_len = (uint32_t)strlen(text); /* up to 7 bytes */
  memcpy(result->v_bytes, text, strlen(text));
  return 0;
}

#define UNUSED (void)handle, (void)args, (void)num_args
EXPORT int __tvm_ffi_scale(void* handle, const RewireFFIAny* args, int32_t num_args, RewireFFIAny* result) {
  UNUSED, (void)result;
  return 0;
}
EXPORT int __tvm_ffi__doc_scale(void* handle, const RewireFFIAny* args, int32_t num_args,
                                RewireFFIAny* result) {
  UNUSED;
  return Text("y = k x", result);
}
EXPORT int __tvm_ffi__metadata_scale(void* handle, const RewireFFIAny* args, int32_t num_args,
                                     RewireFFIAny* result) {
  UNUSED;
  return Text("{\"a\":1}", result);
}

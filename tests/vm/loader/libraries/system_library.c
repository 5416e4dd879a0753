/* SPDX-License-Identifier: Apache-2.0 */
/* A library made for a program that links it (`system-lib`): it registers its functions when it is loaded. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef union {
  int64_t v_int64;
  double v_float64;
} Value;

int TVMBackendRegisterSystemLibSymbol(const char* name, void* symbol);

EXPORT void* __tvm_module_ctx = 0;

EXPORT int answer(Value* args, const int* codes, int num_args, Value* result, int* result_code,
                  void* resource) {
  (void)args, (void)codes, (void)num_args, (void)resource;
  result->v_int64 = 42;
  *result_code = 0;
  return 0;
}

__attribute__((constructor)) static void Register(void) {
  TVMBackendRegisterSystemLibSymbol("answer", (void*)&answer);
}

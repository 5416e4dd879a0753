/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the classic ABI that name what they call, as TVM's C source target makes them, and float16 code
 * of TVM up to 0.13. With -DMISSING one that nobody provides. With -DCALLS_BACK it has a variable for the
 * address of one. */
#include <stdint.h>

typedef union {
  int64_t v_int64;
  double v_float64;
} Value;

void TVMAPISetLastError(const char* message);
float __gnu_h2f_ieee(uint16_t half);
uint16_t __gnu_f2h_ieee(float value);
void some_function_of_nobody(void);

#ifdef CALLS_BACK
__attribute__((visibility("default"))) void* __TVMFunctionOfNobody = 0;
#endif

__attribute__((visibility("default"))) const char __tvm_main__[] = "half_plus_one";

__attribute__((visibility("default"))) int half_plus_one(Value* args, const int* codes, int num_args,
                                                         Value* result, int* result_code, void* resource) {
  (void)codes, (void)resource;
  if (num_args != 1) {
    TVMAPISetLastError("half_plus_one: expected 1 argument");
    return -1;
  }
#ifdef MISSING
  some_function_of_nobody();
#endif
  result->v_int64 = __gnu_f2h_ieee(__gnu_h2f_ieee((uint16_t)args[0].v_int64) + 1.0f);
  *result_code = 0;
  return 0;
}

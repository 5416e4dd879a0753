/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's code generator of the classic ABI emits this; here it is written by hand. */
#include <dlpack/dlpack.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;
typedef struct {
  void* sync_handle;
  int32_t num_task;
} Group;

EXPORT void* __tvm_module_ctx = 0;
EXPORT const char __tvm_main__[] = "classic_add";
EXPORT void (*__TVMAPISetLastError)(const char* message) = 0;
EXPORT int (*__TVMFuncCall)(void* function, Value* args, int* codes, int num_args, Value* result,
                            int* code) = 0;
EXPORT int (*__TVMBackendGetFuncFromEnv)(void* context, const char* name, void** function) = 0;
EXPORT int (*__TVMBackendParallelLaunch)(int (*task)(int, Group*, void*), void* data, int num_task) = 0;
EXPORT void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = 0;
EXPORT int (*__TVMBackendFreeWorkspace)(int, int, void*) = 0;

#define KERNEL(name) \
  EXPORT int name(Value* args, int* codes, int num_args, Value* result, int* result_code, void* resource)
#define UNUSED (void)args, (void)codes, (void)num_args, (void)result, (void)result_code, (void)resource

static int Fail(const char* message) {
  __TVMAPISetLastError(message);
  return -1;
}

KERNEL(classic_add) {
  UNUSED;
  if (num_args != 2) return Fail("Assert fail: num_args == 2, classic_add: num_args should be 2");
  if (codes[0] != 0 || codes[1] != 0) return Fail("Assert fail: integers expected");
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  *result_code = 0;
  return 0;
}

/* Calls classic_add by name. */
KERNEL(classic_call) {
  UNUSED;
  void* function = 0;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "classic_add", &function) != 0) return -1;
  return __TVMFuncCall(function, args, codes, num_args, result, result_code);
}
KERNEL(classic_call_missing) {
  UNUSED;
  void* function = 0;
  return __TVMBackendGetFuncFromEnv(__tvm_module_ctx, "tvm.contrib.no.such", &function);
}

/* Call functions of TVM's runtime as its compiled code does: tensors from the caller, the rest as constants.
 */
static int CallRuntime(const char* name, Value* args, int* codes, int tensors, const int64_t* rest, int count,
                       const char* text) {
  void* function = 0;
  Value all[8], result;
  int all_codes[8], code = 4, given = 0;
  for (; given < tensors; ++given) all[given] = args[given], all_codes[given] = codes[given];
  for (int i = 0; i < count; ++i, ++given) {
    all[given].v_int64 = rest[i], all_codes[given] = 0;
    if (text != 0 && i == count - 2) all[given].v_handle = (void*)text, all_codes[given] = 11;
  }
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, name, &function) != 0) return -1;
  return __TVMFuncCall(function, all, all_codes, given, &result, &code);
}
KERNEL(classic_argsort) {
  UNUSED;
  const int64_t axis_and_ascending[] = {0, 1};
  return CallRuntime("tvm.contrib.sort.argsort", args, codes, 2, axis_and_ascending, 2, 0);
}
KERNEL(classic_sort_down) {
  UNUSED;
  const int64_t axis_and_ascending[] = {-1, 0};
  return CallRuntime("tvm.contrib.sort.sort", args, codes, 2, axis_and_ascending, 2, 0);
}
KERNEL(classic_top2) {
  UNUSED;
  const int64_t rest[] = {2, -1, 0, 0};
  return CallRuntime("tvm.contrib.sort.topk", args, codes, 3, rest, 4, "both");
}
KERNEL(classic_matmul) {
  UNUSED;
  const int64_t transposed[] = {0, 0};
  return CallRuntime("tvm.contrib.cblas.matmul", args, codes, 3, transposed, 2, 0);
}
KERNEL(classic_matmul_transposed) {
  UNUSED;
  const int64_t transposed[] = {1, 1};
  return CallRuntime("tvm.contrib.cblas.matmul", args, codes, 3, transposed, 2, 0);
}

/* Gives type code, element type, strides and dimensions of args[0] as one number, and type code of args[1].
 */
KERNEL(classic_describe) {
  UNUSED;
  const DLTensor* tensor = (const DLTensor*)args[0].v_handle;
  int64_t text = codes[0];
  text = text * 10 + tensor->dtype.code;
  text = text * 100 + tensor->dtype.bits;
  text = text * 10 + (tensor->strides != 0);
  text = text * 10 + tensor->ndim;
  if (num_args > 1) text = text * 100 + codes[1];
  result->v_int64 = text;
  *result_code = 0;
  return 0;
}

KERNEL(classic_return_object) {
  UNUSED;
  result->v_handle = result;
  *result_code = 8;
  return 0;
}
KERNEL(classic_return_float) {
  UNUSED;
  result->v_float64 = 2.5;
  *result_code = 2;
  return 0;
}

/* Sums up its arguments, however many. */
KERNEL(classic_sum) {
  UNUSED;
  result->v_int64 = 0;
  for (int i = 0; i < num_args; ++i) result->v_int64 += args[i].v_int64;
  *result_code = 0;
  return 0;
}

static int Task(int task_id, Group* group, void* data) {
  (void)group;
  if (task_id == 5) return Fail("task 5 says no");
  int64_t* scratch = (int64_t*)__TVMBackendAllocWorkspace(1, 0, 4096, 0, 64);
  if (scratch == 0) return -1;
  scratch[0] = task_id + 1;
  ((int64_t*)data)[task_id] = scratch[0];
  return __TVMBackendFreeWorkspace(1, 0, scratch);
}
/* args[0] tasks. */
KERNEL(classic_parallel) {
  UNUSED;
  int64_t parts[16] = {0};
  if (__TVMBackendParallelLaunch(&Task, parts, (int)args[0].v_int64) != 0) return -1;
  result->v_int64 = 0;
  for (int i = 0; i < 16; ++i) result->v_int64 += parts[i];
  *result_code = 0;
  return 0;
}

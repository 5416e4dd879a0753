/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's code generator emits this; here it is written by hand: no undefined symbol, everything through
 * context variables. */
#include <stdint.h>

#include "rewire/vm/kernel/ffi_abi.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct {
  void* sync_handle;
  int32_t num_task;
} Group;

EXPORT void* __tvm_ffi__library_ctx = 0;
EXPORT void (*__TVMFFIErrorSetRaisedFromCStr)(const char* kind, const char* message) = 0;
EXPORT int (*__TVMFFIFunctionCall)(void* function, RewireFFIAny* args, int32_t num_args,
                                   RewireFFIAny* result) = 0;
EXPORT int (*__TVMFFIEnvModLookupFromImports)(void* context, const char* name, void** out) = 0;
EXPORT int (*__TVMFFIHandleInitOnce)(void** slot, int (*init)(void** result)) = 0;
EXPORT void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = 0;
EXPORT int (*__TVMBackendFreeWorkspace)(int, int, void*) = 0;
EXPORT int (*__TVMBackendParallelLaunch)(int (*task)(int, Group*, void*), void* data, int num_task) = 0;
EXPORT int (*__TVMBackendParallelBarrier)(int task_id, Group* group) = 0;

#define KERNEL(name) \
  EXPORT int __tvm_ffi_##name(void* handle, const RewireFFIAny* args, int32_t num_args, RewireFFIAny* result)
#define UNUSED (void)handle, (void)args, (void)num_args, (void)result

KERNEL(ctx_fail) {
  UNUSED;
  __TVMFFIErrorSetRaisedFromCStr("ValueError", "raised through a context variable");
  return -1;
}

static void* g_fail = 0;
static int LookUpFail(void** result) {
  return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "ctx_answer", result);
}

KERNEL(ctx_answer) {
  UNUSED;
  result->type_index = kRewireFFIInt;
  result->v_int64 = handle == 0 ? 42 : -42;
  return 0;
}

/* Calls a function of its own by name, as TVM's code calls packed functions. */
KERNEL(ctx_call) {
  UNUSED;
  if (__TVMFFIHandleInitOnce(&g_fail, &LookUpFail) != 0) return -1;
  return __TVMFFIFunctionCall(g_fail, 0, 0, result);
}

KERNEL(ctx_call_missing) {
  UNUSED;
  void* function = 0;
  return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "no_such_function", &function);
}

enum { kMostTasks = 64 };
typedef struct {
  int64_t parts[kMostTasks];
  int64_t totals[kMostTasks];
  int32_t tasks_seen;
} Sums;

/* Each task adds up what all have written before the barrier: wrong unless all have arrived. */
static int SumTask(int task_id, Group* group, void* data) {
  Sums* sums = (Sums*)data;
  sums->parts[task_id] = task_id + 1;
  if (__TVMBackendParallelBarrier(task_id, group) != 0) return -1;
  sums->totals[task_id] = 0;
  for (int i = 0; i < group->num_task; ++i) sums->totals[task_id] += sums->parts[i];
  if (__TVMBackendParallelBarrier(task_id, group) != 0) return -1;
  if (task_id == 0) sums->tasks_seen = group->num_task;
  return 0;
}

/* args: number of tasks (0: the pool's). Result: the sum of all tasks' totals, or the tasks when 0 was asked
 * for. */
KERNEL(ctx_barrier) {
  UNUSED;
  Sums sums = {{0}, {0}, 0};
  if (__TVMBackendParallelLaunch(&SumTask, &sums, (int)args[0].v_int64) != 0) return -1;
  result->type_index = kRewireFFIInt;
  result->v_int64 = 0;
  for (int i = 0; i < sums.tasks_seen; ++i) result->v_int64 += sums.totals[i];
  if (args[0].v_int64 == 0) result->v_int64 = sums.tasks_seen;
  return 0;
}

static int FailingTask(int task_id, Group* group, void* data) {
  (void)data;
  if (task_id == 1) {
    __TVMFFIErrorSetRaisedFromCStr("RuntimeError", "task 1 has failed");
    return -1;
  }
  return __TVMBackendParallelBarrier(task_id, group); /* the others wait for it */
}
KERNEL(ctx_failing_task) {
  UNUSED;
  return __TVMBackendParallelLaunch(&FailingTask, 0, 4);
}

static int DesertingTask(int task_id, Group* group, void* data) {
  (void)data;
  return task_id == 2 ? 0 : __TVMBackendParallelBarrier(task_id, group);
}
KERNEL(ctx_deserting_task) {
  UNUSED;
  return __TVMBackendParallelLaunch(&DesertingTask, 0, 4);
}

/* Each of many tasks takes and frees scratch memory many times. */
static int WorkspaceTask(int task_id, Group* group, void* data) {
  (void)group;
  for (int i = 0; i < 100; ++i) {
    int64_t* memory = (int64_t*)__TVMBackendAllocWorkspace(1, 0, 4096, 0, 64);
    void* small = __TVMBackendAllocWorkspace(1, 0, 8, 0, 64);
    if (memory == 0 || (uintptr_t)memory % 128 != 0) return -1;
    if (small == 0 || (uintptr_t)small % 128 != 0) return -1;
    if (__TVMBackendFreeWorkspace(1, 0, small) != 0) return -1;
    for (int k = 0; k < 512; ++k) memory[k] = task_id;
    for (int k = 0; k < 512; ++k) {
      if (memory[k] != task_id) return -1;
    }
    if (__TVMBackendFreeWorkspace(1, 0, memory) != 0) return -1;
  }
  ((int64_t*)data)[task_id] = 1;
  return 0;
}
KERNEL(ctx_workspace) {
  UNUSED;
  int64_t done[16] = {0};
  if (__TVMBackendParallelLaunch(&WorkspaceTask, done, 16) != 0) return -1;
  result->type_index = kRewireFFIInt;
  result->v_int64 = 0;
  for (int i = 0; i < 16; ++i) result->v_int64 += done[i];
  return 0;
}

KERNEL(ctx_device_workspace) {
  UNUSED;
  return __TVMBackendAllocWorkspace(2, 1, 64, 0, 8) == 0 ? -1 : 0;
}

/* Takes args[0] bytes and does not free them. */
KERNEL(ctx_keep_workspace) {
  UNUSED;
  if (__TVMBackendAllocWorkspace(1, 0, (uint64_t)args[0].v_int64, 0, 8) == 0) return -1;
  result->type_index = kRewireFFIInt;
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/branches.h>. */
/* Branches: several chains of kernel calls that one kernel runs at once, on the program's threads. Plain C.
 *
 * The function for this stands behind RewireKernelApi in memory, if the table's struct_size says so. It has a
 * header of its own because hardly any kernel needs it. */
#ifndef REWIRE_VM_KERNEL_BRANCHES_H_
#define REWIRE_VM_KERNEL_BRANCHES_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A branch. Its memory serves as the workspace of the kernels that it calls: each block begins where the last
 * one ends, rounded up to 64 bytes. */
typedef struct RewireBranch {
  int (*run)(struct RewireBranch* branch); /* returns 0, or -1 with the error set */
  void* data;                              /* for `run` */
  void* memory;                            /* 64-byte aligned */
  uint64_t bytes;                          /* of `memory`; a multiple of 64 */
  uint64_t used;     /* of `bytes`; `run` sets it to 0 when nothing of the memory is needed any more */
  const char* doing; /* what `run` is doing, such as "Relu 'r': ": put in front of its error. May be NULL */
  uint64_t reserved[2]; /* makes 64 bytes: in an array that is aligned, threads share no cache line */
} RewireBranch;

typedef struct RewireBranchesApi {
  RewireKernelApi kernel;

  /* Calls `run` of each branch, perhaps at once on several threads; the calling thread takes part. Returns
   * when all are done: 0, or -1 with the error of one that failed. Branches that have not begun by then are
   * left out.
   *
   * Inside `run` a branch may use set_error, workspace, parallel_for, thread_count and cancelled, and call
   * kernels that use nothing else. parallel_for runs on the branch's thread alone, and thread_count is 1. */
  int (*run_branches)(RewireBranch* branches, int32_t count);
} RewireBranchesApi;

/* The table with run_branches, or NULL if the VM does not have it. */
static inline const RewireBranchesApi* RewireBranchesOf(const RewireKernelApi* api) {
  return api->struct_size < sizeof(RewireBranchesApi) ? NULL : (const RewireBranchesApi*)api;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_BRANCHES_H_ */

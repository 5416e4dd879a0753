/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel library declares what its kernels take from RewireKernelApi::workspace, for hosts that must
 * know how much memory a run needs before it (docs/embedding.md, "Bounded memory"). Plain C. */
#ifndef REWIRE_VM_KERNEL_WORKSPACE_H_
#define REWIRE_VM_KERNEL_WORKSPACE_H_

#include "vm/kernel/ffi_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How much workspace one call takes at most, for hosts that must know before a run: the sizes of the blocks
 * that it asks for, in bytes, in blocks[0 .. result); the result is at most REWIRE_MAX_WORKSPACES, or -1 when
 * the tensors do not tell. They have shapes and dtypes but no data, and may be larger than those of the call,
 * so the sizes must not shrink when a dimension grows. `handle` is what the function itself gets: of a kernel
 * with attributes, the object that its factory has made. NULL stands for an argument that is None. As in the
 * call itself, number, ranks and dtypes are whatever a file says. */
#define REWIRE_MAX_WORKSPACES 8
typedef int32_t (*RewireWorkspaceBound)(void* handle, const DLTensor* const* tensors, int32_t count,
                                        uint64_t* blocks);

typedef struct RewireKernelWorkspace {
  const char* name;
  RewireWorkspaceBound bound;
} RewireKernelWorkspace;

/* A library may export `__rewire_kernel_workspaces`, of this type: what its kernels take from workspace().
 * Those that take none say so with a bound that returns 0. */
typedef struct RewireKernelWorkspaces {
  uint32_t struct_size; /* sizeof(RewireKernelWorkspaces) */
  uint32_t count;
  const RewireKernelWorkspace* entries;
} RewireKernelWorkspaces;

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_WORKSPACE_H_ */

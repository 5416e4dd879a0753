/* SPDX-License-Identifier: Apache-2.0 */
/* Rewire gives this to its own tvm-ffi runtime library, which is loaded like any other and links nothing of
 * the VM. */
#ifndef REWIRE_VM_LOADER_FFI_SHIM_HOST_H_
#define REWIRE_VM_LOADER_FFI_SHIM_HOST_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireFfiShimHost {
  const RewireKernelApi* api;
  /* Gives the thread's Rewire error, if any, to `sink` and clears it. */
  void (*take_error)(void (*sink)(const char* kind, const char* message));
  /* A function that Rewire provides under a TVM name (`TVMBackendAllocWorkspace`, ...); NULL for others. */
  void* (*backend_function)(const char* name);
} RewireFfiShimHost;

/* The library's one symbol of ours: the loader calls it before any other. `host` has static storage. */
typedef void (*RewireFfiShimBind)(const RewireFfiShimHost* host);
#define REWIRE_FFI_SHIM_BIND "rewire_ffi_shim_bind"

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_LOADER_FFI_SHIM_HOST_H_ */

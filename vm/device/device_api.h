/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of device as a struct of functions, so that a library can add one; in plain C. The host is built in.
 */
#ifndef REWIRE_VM_DEVICE_DEVICE_API_H_
#define REWIRE_VM_DEVICE_DEVICE_API_H_

#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All functions may be called from any thread. Those that return int give 0, or non-zero after the thread's
 * error has been set (RewireKernelApi::set_error). The struct must outlive every Program that is linked with
 * it and every result of theirs. */
typedef struct RewireDeviceApi {
  uint32_t struct_size; /* sizeof(RewireDeviceApi) of whoever filled it in */
  int32_t device_type;  /* DLDeviceType */
  const char* name;     /* "cuda" */
  void* context;        /* first argument of every function */

  /* Host code may read and write the memory through its pointers. */
  bool host_addressable;

  /* `bytes` at a multiple of `alignment`; `scope` is the device table's memory scope. NULL when there is
   * none. */
  void* (*allocate)(void* context, DLDevice device, uint64_t bytes, uint64_t alignment, const char* scope);
  void (*deallocate)(void* context, DLDevice device, void* block);
  /* Copies between this device's memory and the host's, or within the device; in order with the stream's
   * other work. */
  int (*copy)(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
              uint64_t bytes, void* stream);
  /* Returns when all work given to the stream is done. */
  int (*synchronize)(void* context, DLDevice device, void* stream);
  /* A stream for a VM's work; NULL is the device's default. Optional (NULL). */
  void* (*make_stream)(void* context, DLDevice device);
  void (*destroy_stream)(void* context, DLDevice device, void* stream);
} RewireDeviceApi;

#ifdef __cplusplus
}

namespace rewire {
using DeviceApi = ::RewireDeviceApi;
}  // namespace rewire
#endif

#endif /* REWIRE_VM_DEVICE_DEVICE_API_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/device/device_api.h>. */
/* RewireDeviceApi: a kind of device as a struct of functions, so that a library can add one. Plain C. The
 * host device is built in. */
#ifndef REWIRE_VM_DEVICE_DEVICE_API_H_
#define REWIRE_VM_DEVICE_DEVICE_API_H_

#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread may call any function. Functions that return int return 0 for success. On failure they set the
 * thread's error (RewireKernelApi::set_error) and return non-zero. The struct must outlive every Program that
 * is linked with it and all results of these Programs. */
typedef struct RewireDeviceApi {
  uint32_t struct_size; /* sizeof(RewireDeviceApi) in the code that filled it in */
  int32_t device_type;  /* DLDeviceType */
  const char* name;     /* "cuda" */
  void* context;        /* first argument of every function */

  /* Host code may read and write the memory through its pointers. */
  bool host_addressable;

  /* Returns `bytes` bytes at a multiple of `alignment`, or NULL if there is no memory. `scope` is the memory
   * scope in the executable's device table. */
  void* (*allocate)(void* context, DLDevice device, uint64_t bytes, uint64_t alignment, const char* scope);
  void (*deallocate)(void* context, DLDevice device, void* block);
  /* Copies between this device and the host, or within the device, after the stream's earlier work. */
  int (*copy)(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
              uint64_t bytes, void* stream);
  /* Waits until all work given to the stream is done. */
  int (*synchronize)(void* context, DLDevice device, void* stream);
  /* Makes a stream for a VM's work; NULL is the device's default stream. Optional: may be NULL. */
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

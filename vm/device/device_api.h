// SPDX-License-Identifier: Apache-2.0
// DeviceApi: a kind of device as a struct of functions, so that a library can add one. The host is built in.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

namespace rewire {

// All functions may be called from any thread. Those that return int give 0, or non-zero after
// SetKernelError.
struct DeviceApi {
  std::uint32_t struct_size;  // sizeof(DeviceApi) of whoever filled it in
  std::int32_t device_type;   // DLDeviceType
  const char* name;           // "cuda"
  void* context;

  // Host code may read and write the memory through its pointers.
  bool host_addressable;

  // `bytes` at a multiple of `alignment`; `scope` is the device table's memory scope. Null when there is
  // none.
  void* (*allocate)(void* context, DLDevice device, std::uint64_t bytes, std::uint64_t alignment,
                    const char* scope);
  void (*deallocate)(void* context, DLDevice device, void* block);
  // Copies between this device's memory and the host's, or within the device; in order with the stream's
  // other work.
  int (*copy)(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
              std::uint64_t bytes, void* stream);
  // Returns when all work given to the stream is done.
  int (*synchronize)(void* context, DLDevice device, void* stream);
  // A stream for a VM's work; null is the device's default. Optional (null).
  void* (*make_stream)(void* context, DLDevice device);
  void (*destroy_stream)(void* context, DLDevice device, void* stream);
};

}  // namespace rewire

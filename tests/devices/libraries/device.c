/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of devices outside the tree, by what is defined: WITHOUT_DRIVER, HALF, or a whole one with two
 * devices whose memory is the host's. NO_DEVICE is a library without a device. */
#include <stdlib.h>
#include <string.h>

#include "rewire/vm/kernel/device_api.h"

#if defined(NO_DEVICE)
int nothing_of_a_device = 1;
#else

static const char* Words(void* context) {
  (void)context;
  return "no memory is left";
}

static int Count(void* context, int32_t* devices) {
  (void)context;
  *devices = 2;
  return REWIRE_DEVICE_OK;
}

static int Allocate(void* context, DLDevice device, uint64_t bytes, uint64_t alignment, const char* scope,
                    void* stream, void** block) {
  (void)context, (void)device, (void)scope, (void)stream;
  *block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *block != NULL ? REWIRE_DEVICE_OK : REWIRE_DEVICE_NO_MEMORY;
}

static int Deallocate(void* context, DLDevice device, void* block, void* stream) {
  (void)context, (void)device, (void)stream;
  free(block);
  return REWIRE_DEVICE_OK;
}

static int Copy(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
                uint64_t bytes, void* stream) {
  (void)context, (void)to_device, (void)from_device, (void)stream;
  memmove(to, from, bytes);
  return REWIRE_DEVICE_OK;
}

static int Synchronize(void* context, DLDevice device, void* stream) {
  (void)context, (void)device, (void)stream;
  return REWIRE_DEVICE_OK;
}

static RewireDeviceApi the_device = {
    .struct_size = sizeof(RewireDeviceApi),
    .device_type = kDLExtDev,
    .name = "heap",
    .flags = REWIRE_DEVICE_HOST_ADDRESSABLE,
    .error = Words,
    .count = Count,
    .allocate = Allocate,
    .deallocate = Deallocate,
    .copy = Copy,
    .synchronize = Synchronize,
};

__attribute__((visibility("default"))) int rewire_device_open(uint32_t version, const RewireDeviceApi** api,
                                                              const char** reason) {
#if defined(WITHOUT_DRIVER)
  (void)version, (void)api, (void)the_device;
  *reason = "libnone.so.7 is missing";
  return REWIRE_DEVICE_UNSUPPORTED;
#else
  *reason = version == REWIRE_DEVICE_API_VERSION ? "" : "another version";
#if defined(HALF)
  the_device.copy = NULL;
#endif
  *api = &the_device;
  return REWIRE_DEVICE_OK;
#endif
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a host for the tests of the server: f(x, x, y) for f32[N, 4]. */
#define _POSIX_C_SOURCE 200809L /* O_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

/* A file that a library opens when it is loaded stays open. */
static int opened = -1;
__attribute__((constructor)) static void Open(void) { opened = open("/dev/null", O_RDONLY | O_CLOEXEC); }

static int Fill(const RewireFFIAny* args, int32_t num_args, float factor, float term) {
  const DLTensor* const x = num_args == 3 ? RewireTensorOf(&args[0]) : NULL;
  DLTensor* const y = num_args == 3 ? RewireTensorOf(&args[2]) : NULL;
  if (x == NULL || y == NULL) {
    __rewire_kernel_api->set_error("TypeError", "three tensors are expected");
    return -1;
  }
  for (int64_t i = 0; i < x->shape[0] * 4; ++i)
    ((float*)y->data)[i] = factor * ((const float*)x->data)[i] + term;
  return 0;
}

/* y = 3 x, if the library could open a file when it was loaded. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_host_triple(void* handle, const RewireFFIAny* args, int32_t num_args,
                                               RewireFFIAny* result) {
  (void)handle, (void)result;
  return Fill(args, num_args, opened < 0 ? 0 : 3, 0);
}

/* y = the error of opening a file now. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_host_opens(void* handle, const RewireFFIAny* args, int32_t num_args,
                                              RewireFFIAny* result) {
  (void)handle, (void)result;
  const int error = open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
  return Fill(args, num_args, 0, (float)error);
}

/* Makes a socket if x begins with 1. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_host_connects(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                 RewireFFIAny* result) {
  (void)handle, (void)result;
  const DLTensor* const x = num_args == 3 ? RewireTensorOf(&args[0]) : NULL;
  if (x != NULL && ((const float*)x->data)[0] == 1) (void)socket(AF_INET, SOCK_STREAM, 0);
  return Fill(args, num_args, 1, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel library in plain C: one file, Rewire's kernel headers, nothing to link.
 *
 *   example_saxpy(alpha: f32[], x: f32[...], y: f32[...], out: f32[...])    out = alpha * x + y
 *
 * x, y and out have one shape and are contiguous. Large arrays are split over the program's threads. */
#include <stdio.h>

#include "rewire/vm/kernel/kernel.h"

/* The loader puts a table here, through which this library asks the VM for things. */
REWIRE_KERNEL_LIBRARY;

static int Fail(const char* kind, const char* message) {
  __rewire_kernel_api->set_error(kind, message);
  return -1;
}

static int IsFloat32(const DLTensor* tensor) {
  return tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32 && tensor->dtype.lanes == 1;
}

/* Elements; -1 when the tensor is not contiguous. */
static int64_t ContiguousSize(const DLTensor* tensor) {
  int64_t size = 1;
  for (int i = tensor->ndim - 1; i >= 0; --i) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != size) return -1;
    size *= tensor->shape[i];
  }
  return size;
}

static int SameShape(const DLTensor* a, const DLTensor* b) {
  if (a->ndim != b->ndim) return 0;
  for (int i = 0; i < a->ndim; ++i) {
    if (a->shape[i] != b->shape[i]) return 0;
  }
  return 1;
}

typedef struct {
  float alpha;
  const float* x;
  const float* y;
  float* out;
} Saxpy;

static void SaxpyRange(void* data, int64_t begin, int64_t end) {
  const Saxpy* saxpy = (const Saxpy*)data;
  for (int64_t i = begin; i < end; ++i) saxpy->out[i] = saxpy->alpha * saxpy->x[i] + saxpy->y[i];
}

/* The name after __tvm_ffi_ is what a program imports. */
REWIRE_KERNEL_EXPORT int __tvm_ffi_example_saxpy(void* handle, const RewireFFIAny* args, int32_t num_args,
                                                 RewireFFIAny* result) {
  static const char* const kNames[] = {"alpha", "x", "y", "out"};
  char message[128];
  DLTensor* tensors[4];
  (void)handle;
  (void)result; /* nothing is returned: the output is the last argument */
  if (num_args != 4) {
    snprintf(message, sizeof(message), "expected 4 arguments, got %d", (int)num_args);
    return Fail("TypeError", message);
  }
  for (int i = 0; i < 4; ++i) {
    tensors[i] = RewireTensorOf(&args[i]);
    if (tensors[i] == NULL || !IsFloat32(tensors[i]) || tensors[i]->device.device_type != kDLCPU) {
      snprintf(message, sizeof(message), "%s: expected an f32 tensor on the host", kNames[i]);
      return Fail("TypeError", message);
    }
  }
  if (tensors[0]->ndim != 0) return Fail("ValueError", "alpha: expected a scalar");
  const int64_t size = ContiguousSize(tensors[3]);
  for (int i = 1; i < 4; ++i) {
    if (!SameShape(tensors[i], tensors[3]) || ContiguousSize(tensors[i]) < 0) {
      snprintf(message, sizeof(message), "%s: expected a contiguous tensor of out's shape", kNames[i]);
      return Fail("ValueError", message);
    }
  }
  Saxpy saxpy = {*(const float*)tensors[0]->data, (const float*)tensors[1]->data,
                 (const float*)tensors[2]->data, (float*)tensors[3]->data};
  __rewire_kernel_api->parallel_for(0, size, 16384, SaxpyRange, &saxpy);
  return 0;
}

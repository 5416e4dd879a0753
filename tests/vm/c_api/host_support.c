/* SPDX-License-Identifier: Apache-2.0 */
#include "rewire/tests/vm/c_api/host_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

int Check(int ok, const char* what, int line) {
  if (!ok) {
    fprintf(stderr, "check at line %d: %s (last error: %s)\n", line, what, rewire_last_error_message());
    ++failures;
  }
  return ok;
}

/* host.add: out = a + b, floats. Counts its calls where the handle points. */
static int Add(void* handle, const RewireFFIAny* args, int32_t count, RewireFFIAny* result) {
  (void)result;
  if (count != 3) {
    rewire_kernel_api()->set_error("TypeError", "three arguments expected");
    return -1;
  }
  const DLTensor* a = RewireTensorOf(&args[0]);
  const DLTensor* b = RewireTensorOf(&args[1]);
  DLTensor* out = RewireTensorOf(&args[2]);
  for (int64_t i = 0; i < a->shape[0]; ++i)
    ((float*)out->data)[i] = ((const float*)a->data)[i] + ((const float*)b->data)[i];
  ++*(int*)handle;
  return 0;
}

static int FailAlways(void* handle, const RewireFFIAny* args, int32_t count, RewireFFIAny* result) {
  (void)handle, (void)args, (void)count, (void)result;
  rewire_kernel_api()->set_error("ValueError", "this kernel fails");
  return -1;
}

DLTensor Vector(float* data, int64_t* shape) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 1;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static float weights[2] = {10, 20};
int64_t two[1] = {2};
static int calls;

RewireLinkOptions* Options(void) {
  RewireLinkOptions* options = NULL;
  const DLTensor parameter = Vector(weights, two);
  CHECK_OK(rewire_link_options_make(&options));
  CHECK_OK(rewire_link_options_add_kernel(options, "host.add", Add, &calls, NULL));
  CHECK_OK(rewire_link_options_add_kernel(options, "host.fail", FailAlways, NULL, NULL));
  CHECK_OK(rewire_link_options_borrow_parameter(options, "w", &parameter));
  CHECK_OK(rewire_link_options_use_stock_kernels(options, 0));
  return options;
}

void OpenHost(const void* data, size_t size, RewireExecutable** executable, RewireProgram** program,
              RewireVm** vm) {
  RewireLinkOptions* options = Options();
  CHECK_OK(rewire_executable_open_memory(data, size, NULL, NULL, NULL, executable));
  CHECK_OK(rewire_program_link(*executable, options, program));
  rewire_link_options_destroy(options);
  CHECK_OK(rewire_vm_make(*program, NULL, vm));
}

void StartChecks(void) {
  failures = 0;
  calls = 0;
}

int FailedChecks(void) { return failures; }

int AddCalls(void) { return calls; }

struct Owned {
  DLManagedTensor managed;
  float data[2];
  int* deleted;
};

static float last_deleted[2];
const float* LastDeleted(void) { return last_deleted; }

static void DeleteOwned(DLManagedTensor* managed) {
  struct Owned* owned = (struct Owned*)managed->manager_ctx;
  ++*owned->deleted;
  memcpy(last_deleted, owned->data, sizeof(last_deleted));
  free(owned);
}

DLManagedTensor* MakeOwned(float a, float b, int* deleted) {
  struct Owned* owned = (struct Owned*)calloc(1, sizeof(*owned));
  owned->data[0] = a;
  owned->data[1] = b;
  owned->deleted = deleted;
  owned->managed.dl_tensor = Vector(owned->data, two);
  owned->managed.manager_ctx = owned;
  owned->managed.deleter = DeleteOwned;
  return &owned->managed;
}

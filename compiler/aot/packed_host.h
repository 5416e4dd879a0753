/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/compiler/aot/packed_host.h>. */
/* C source of vm-aot calls kernels as packed functions, which its host finds by name.
 *
 * The source holds a table of its kernel imports. A host finds a function for each, once, and passes the
 * array to every call. packed_host.c does so from tables of kernel libraries such as RewireCpuKernels(); it
 * is all that such a program has in place of the VM. Kernels keep state in the array between calls, so each
 * thread has an array of its own. */
#ifndef REWIRE_COMPILER_AOT_PACKED_HOST_H_
#define REWIRE_COMPILER_AOT_PACKED_HOST_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kRewireAotInt = 0, kRewireAotFloat = 1, kRewireAotText = 2, kRewireAotInts = 3, kRewireAotFloats = 4 };

typedef struct RewireAotAttribute {
  const char* name;
  int32_t kind;
  int64_t integer; /* of a list: the number of its elements */
  double number;
  const char* text;
  const int64_t* integers;
  const double* numbers;
} RewireAotAttribute;

typedef struct RewireAotImport {
  const char* name;
  const RewireAotAttribute* attributes;
  int32_t attribute_count;
} RewireAotImport;

/* A kernel that was found: zero all of it first. */
typedef struct RewireAotKernel {
  RewirePackedFunction call;
  void* handle;
  RewireFFIObject* owner; /* the function object that a factory made, or null */
  void* slot;             /* what the kernel keeps (RewireKernelApi::set_slot) */
  void (*slot_deleter)(void* state);
} RewireAotKernel;

/* The functions that kernels of this host call. A library that is opened at run time gets the address in its
 * variable __rewire_kernel_api; libraries that are linked share the one that packed_host.c sets. */
const RewireKernelApi* RewireAotKernelApi(void);

/* Finds all kernels. Returns 0, or -1; *failed is then the place of the import that was not found, or whose
 * attributes were refused, and RewireAotError() says why. */
int RewireAotLink(const RewireAotImport* imports, int32_t count, const RewireKernelTable* table,
                  RewireAotKernel* kernels, int32_t* failed);
void RewireAotUnlink(RewireAotKernel* kernels, int32_t count);

/* RewireAotCall keeps here what the calling thread's kernel needs. Between calls there is no workspace, and
 * the result is zero. */
typedef struct RewireAotThread {
  RewireAotKernel* kernel; /* that runs or was the last to run, or null */
  struct RewireAotBlock* workspaces;
  RewireFFIAny result;
} RewireAotThread;
extern __thread RewireAotThread RewireAotRunning;
int RewireAotFinish(int failed);

/* Calls a kernel: 0, or not 0, and RewireAotError() says why. A program has thousands of such calls. So all
 * that is rare is one test, and what it leads to is elsewhere. */
static inline __attribute__((always_inline)) int RewireAotCall(RewireAotKernel* kernel,
                                                               const RewireFFIAny* arguments, int32_t count) {
  RewireAotThread* const thread = &RewireAotRunning;
  int failed;
  thread->kernel = kernel;
  failed = kernel->call(kernel->handle, arguments, count, &thread->result);
  if (__builtin_expect(((uint64_t)(uintptr_t)thread->workspaces | (uint32_t)thread->result.type_index |
                        (uint32_t)failed) != 0,
                       0)) {
    return RewireAotFinish(failed);
  }
  return 0;
}

/* The text of the calling thread's last failure. */
const char* RewireAotError(void);

/* Used by the source: an argument that is a contiguous tensor in host memory. `dims` holds the dimensions
 * and, behind them, the strides. */
static inline void RewireAotTensor(RewireFFIAny* argument, DLTensor* tensor, const void* data,
                                   DLDataType dtype, int32_t rank, const int64_t* dims) {
  const DLDevice host = {kDLCPU, 0};
  tensor->data = (void*)(uintptr_t)data;
  tensor->device = host;
  tensor->ndim = rank;
  tensor->dtype = dtype;
  tensor->shape = (int64_t*)(uintptr_t)dims;
  tensor->strides = (int64_t*)(uintptr_t)(dims + rank);
  tensor->byte_offset = 0;
  argument->type_index = kRewireFFIDLTensorPtr;
  argument->zero_padding = 0;
  argument->v_ptr = tensor;
}

/* The same for an argument that was such a tensor before: only its data is another. */
static inline void RewireAotMove(DLTensor* tensor, const void* data) {
  tensor->data = (void*)(uintptr_t)data;
}

static inline void RewireAotInteger(RewireFFIAny* argument, int64_t value) {
  argument->type_index = kRewireFFIInt;
  argument->zero_padding = 0;
  argument->v_int64 = value;
}

static inline DLDataType RewireAotType(uint8_t code, uint8_t bits, uint16_t lanes) {
  DLDataType dtype;
  dtype.code = code;
  dtype.bits = bits;
  dtype.lanes = lanes;
  return dtype;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_COMPILER_AOT_PACKED_HOST_H_ */

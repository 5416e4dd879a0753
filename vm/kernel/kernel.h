/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/kernel.h>. */
/* RewireKernelApi: the functions that a kernel may call in the VM that runs it. Plain C. A library links
 * against no symbol of Rewire: the loader writes the address of the function table into the library's
 * variable `__rewire_kernel_api`, which REWIRE_KERNEL_LIBRARY defines.
 *
 * A kernel is a packed function (ffi_abi.h). It is exported as `__tvm_ffi_<name>` or listed in the library's
 * kernel table. Its tensor arguments are objects of type kRewireFFITensor, with the DLTensor at offset 24;
 * `RewireTensorOf(&arg)` returns it. A kernel may rely on this:
 * - byte_offset is 0 if the device's memory is addressable, because it has been added to `data`;
 * - strides is not NULL for rank >= 1;
 * - booleans are {6, 8, 1};
 * - tensors at positions declared as written are not read-only. All other tensors must not be written. A row
 *   (row.h) declares the positions for all programs; without a row, the import declares them.
 *
 * The kernel itself must check ranks, shapes and dtypes.
 *
 * Overlap: if a kernel has a row, its written arguments share memory with other arguments only as the row
 * allows. The VM refuses other calls before the kernel runs. The kernel must handle what its row allows: it
 * must not read again what it may have overwritten. Without a row, the kernel must check for overlap.
 *
 * Threads: a library's functions run on many threads at once, one per VM. State that changes belongs into the
 * slot. The functions of the table may be called only on the thread that runs the kernel, while it runs.
 * Exceptions are set_error, thread_count, parallel_for and cancelled. */
#ifndef REWIRE_VM_KERNEL_KERNEL_H_
#define REWIRE_VM_KERNEL_KERNEL_H_

#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/kernel/row.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REWIRE_KERNEL_API_VERSION 1u

struct RewireDeviceApi; /* vm/kernel/device_api.h */

typedef struct RewireKernelApi {
  uint32_t struct_size; /* bytes of the table that the VM provides: check before using a later member */
  uint32_t version;     /* REWIRE_KERNEL_API_VERSION */

  /* Sets the thread's error; the kernel then returns -1. `kind` is a short class such as "ValueError". Both
   * texts are copied. */
  void (*set_error)(const char* kind, const char* message);

  /* The slot: a pointer that this VM keeps for this import, NULL at first. Whoever sets it gives a deleter,
   * which runs when the VM is destroyed or its kernel state is dropped. Limit how much you keep there. */
  void* (*get_slot)(void);
  void (*set_slot)(void* state, void (*deleter)(void* state));

  /* Allocates scratch memory on the host: 64-byte aligned, uninitialized, valid until the kernel returns. It
   * counts against the VM's byte limit. Each call returns another block. If there is no memory, returns NULL
   * and sets the error. */
  void* (*workspace)(uint64_t bytes);

  /* Splits [begin, end) into ranges of at least `grain` and calls body(data, range_begin, range_end) on each,
   * on the program's thread pool. The calling thread takes part. Returns when all are done. Inside `body`,
   * `cancelled` is the only function of this table that may be called. */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* data, int64_t begin, int64_t end), void* data);
  int32_t (*thread_count)(void);

  /* Returns the running VM's stream for work on a device; NULL is the default stream. See `device` below. */
  void* (*stream)(int32_t device_type, int32_t device_id);

  /* Returns non-zero if the host has cancelled the run or its deadline has passed. A long kernel should then
   * return -1 early. The call costs a few nanoseconds, and a kernel should make it at least every
   * millisecond. It works on the thread that runs the kernel and in the bodies of its parallel_for; there it
   * answers for the same VM. */
  int (*cancelled)(void);

  /* Makes a tensor in the VM's memory, contiguous, with undefined contents, as an owned result. Returns 0, or
   * -1 with the error set. */
  int (*new_tensor)(DLDataType dtype, int32_t ndim, const int64_t* shape, DLDevice device,
                    RewireFFIAny* result);

  /* ADTs (tagged tuples), for imports that take objects. Fields that are passed to new_adt or returned by
   * adt_field are borrowed. Integers are kRewireFFIInt. adt_size returns -1 if the argument is no ADT. */
  int (*new_adt)(uint32_t tag, int32_t size, const RewireFFIAny* fields, RewireFFIAny* result);
  int32_t (*adt_size)(const RewireFFIAny* value);
  uint32_t (*adt_tag)(const RewireFFIAny* value);
  int (*adt_field)(const RewireFFIAny* value, int32_t index, RewireFFIAny* field);

  /* Makes a function object around `call`, which gets `state` as its handle. Factories return such objects.
   * `deleter(state)` runs when the last reference is gone, on any thread. Returns 0, or -1 with the error
   * set; the deleter has then run. */
  int (*new_function)(void* state, RewirePackedFunction call, void (*deleter)(void* state),
                      RewireFFIAny* result);

  /* Writes the fields [begin, begin + count) of an ADT to `fields`, as adt_field would one by one. Returns 0,
   * or -1 with the error set if the ADT does not have all of them; then it writes none. */
  int (*adt_fields)(const RewireFFIAny* value, int32_t begin, int32_t count, RewireFFIAny* fields);

  /* For kernels of devices: gives the functions of a device, and the stream of the running VM there. The
   * kernel gives its work to that stream and returns; it does not wait. All its device arguments stay until
   * the work is done. Its host arguments do not: it must read them before it returns. Returns 0, or -1 with
   * the error set if the executable does not use the device. */
  int (*device)(DLDevice device, const struct RewireDeviceApi** api, void** stream);
} RewireKernelApi;

/* One kernel of a library's table. If is_factory is set, `function` is called once per import, with the
 * attributes as (name, value) pairs of arguments. It returns the kernel as a function object. An attribute's
 * value is an int, a float, a raw string, a Shape (list of integers) or a DLTensor* of float64 (list of
 * floats). */
typedef struct RewireKernelEntry {
  const char* name;
  RewirePackedFunction function;
  int32_t is_factory;
} RewireKernelEntry;

/* A library may export `__rewire_kernel_table` of this type, in addition to single symbols or in place of
 * them. */
typedef struct RewireKernelTable {
  uint32_t struct_size; /* sizeof(RewireKernelTable) */
  uint32_t count;
  const RewireKernelEntry* entries;
  /* The library declares its kernels here (row.h): rows[i] describes entries[i]. NULL: nothing. Not
   * read if struct_size is too small to include it. */
  const RewireKernelRow* rows;
} RewireKernelTable;

#define REWIRE_KERNEL_EXPORT __attribute__((visibility("default")))

/* Use this once in each library, in one source file, outside functions and namespaces. The variable is weak,
 * so that several libraries can be linked statically into one program. They then share one variable with
 * librewire, which sets it when a table is added. */
#define REWIRE_KERNEL_LIBRARY \
  REWIRE_KERNEL_EXPORT __attribute__((weak)) const RewireKernelApi* __rewire_kernel_api = NULL

extern const RewireKernelApi* __rewire_kernel_api;

/* Returns the DLTensor of a tensor argument, in either form. NULL if the argument is not a tensor. */
static inline DLTensor* RewireTensorOf(const RewireFFIAny* arg) {
  if (arg->type_index == kRewireFFITensor) return &((RewireFFITensorObject*)arg->v_obj)->tensor;
  if (arg->type_index == kRewireFFIDLTensorPtr) return (DLTensor*)arg->v_ptr;
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_KERNEL_H_ */

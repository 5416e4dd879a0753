/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel library may ask of the VM that calls it. Plain C, and no symbol of Rewire's to link against:
 * the loader writes the address of this table into the library's variable `__rewire_kernel_api`
 * (REWIRE_KERNEL_LIBRARY defines it).
 *
 * A kernel is a packed function (ffi_abi.h) exported as `__tvm_ffi_<name>` or listed in the library's kernel
 * table. What a kernel may rely on for its tensor arguments, which arrive as objects of type kRewireFFITensor
 * (DLTensor at offset 24, `RewireTensorOf(&arg)`):
 *   - byte_offset is 0 where the device's memory is addressable: it has been added to `data`;
 *   - strides is not NULL for rank >= 1;
 *   - booleans are {6, 8, 1};
 *   - the tensors at the positions that the import declares as written are not read-only; all others must not
 * be written. Ranks, shapes, dtypes and overlap are the kernel's to check.
 *
 * Threads: a library's functions run on many threads at once, one per VM. State that changes belongs into the
 * slot. All functions of the table but set_error, thread_count and parallel_for may be called only on the
 * thread that runs the kernel, while it runs. */
#ifndef REWIRE_VM_KERNEL_KERNEL_H_
#define REWIRE_VM_KERNEL_KERNEL_H_

#include "vm/kernel/ffi_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REWIRE_KERNEL_API_VERSION 1u

typedef struct RewireKernelApi {
  uint32_t struct_size; /* bytes of the table that the VM provides: check before using a later member */
  uint32_t version;     /* REWIRE_KERNEL_API_VERSION */

  /* Sets the thread's error; the kernel then returns -1. `kind` is a short class such as "ValueError". Both
   * are copied. */
  void (*set_error)(const char* kind, const char* message);

  /* The pointer that this VM keeps for this import: NULL at first. Whoever fills it in gives a deleter, run
   * when the VM dies or its kernel state is dropped. Bound what you keep there. */
  void* (*get_slot)(void);
  void (*set_slot)(void* state, void (*deleter)(void* state));

  /* Scratch memory on the host, 64-byte aligned, uninitialised, valid until the kernel returns; counted
   * against the VM's byte limit. NULL, with the error set, when there is none. Several calls give several
   * blocks. */
  void* (*workspace)(uint64_t bytes);

  /* Splits [begin, end) into ranges of at least `grain` and calls body(data, range_begin, range_end) on the
   * program's thread pool, this thread included; returns when all are done. body must not call this table's
   * other functions. */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* data, int64_t begin, int64_t end), void* data);
  int32_t (*thread_count)(void);

  /* The stream that work for a device goes to; NULL is the default stream. */
  void* (*stream)(int32_t device_type, int32_t device_id);

  /* Not 0 when the host has cancelled the run or its deadline has passed: a long kernel then returns -1
   * early. */
  int (*cancelled)(void);

  /* A new tensor in the VM's memory, contiguous, contents undefined, as an owned result. 0, or -1 with the
   * error set. */
  int (*new_tensor)(DLDataType dtype, int32_t ndim, const int64_t* shape, DLDevice device,
                    RewireFFIAny* result);

  /* ADTs, for imports that take objects. Fields given to new_adt and got from adt_field are borrowed;
   * integers are kRewireFFIInt. adt_size is -1 when the argument is no ADT. */
  int (*new_adt)(uint32_t tag, int32_t size, const RewireFFIAny* fields, RewireFFIAny* result);
  int32_t (*adt_size)(const RewireFFIAny* value);
  uint32_t (*adt_tag)(const RewireFFIAny* value);
  int (*adt_field)(const RewireFFIAny* value, int32_t index, RewireFFIAny* field);

  /* A function object around `call`, which gets `state` as its handle; `deleter(state)` runs when its last
   * reference goes, on any thread. What a factory returns. 0, or -1 with the error set (the deleter has then
   * run). */
  int (*new_function)(void* state, RewirePackedFunction call, void (*deleter)(void* state),
                      RewireFFIAny* result);
} RewireKernelApi;

/* One kernel of a library's table. With is_factory, `function` is called once per import with the attributes
 * as (name, value) pairs of arguments and returns the kernel as a function object. An attribute's value is an
 * int, a float, a raw string, a Shape (list of integers) or a DLTensor* of float64 (list of floats). */
typedef struct RewireKernelEntry {
  const char* name;
  RewirePackedFunction function;
  int32_t is_factory;
} RewireKernelEntry;

/* A library may export `__rewire_kernel_table`, of this type, beside or in place of single symbols. */
typedef struct RewireKernelTable {
  uint32_t struct_size; /* sizeof(RewireKernelTable) */
  uint32_t count;
  const RewireKernelEntry* entries;
} RewireKernelTable;

#define REWIRE_KERNEL_EXPORT __attribute__((visibility("default")))

/* Once in each library, in one source file, outside functions and namespaces. Weak, so that several libraries
 * can be linked statically into one program: they then share one variable with librewire, which sets it when
 * a table is added. */
#define REWIRE_KERNEL_LIBRARY \
  REWIRE_KERNEL_EXPORT __attribute__((weak)) const RewireKernelApi* __rewire_kernel_api = NULL

extern const RewireKernelApi* __rewire_kernel_api;

/* The DLTensor inside a tensor argument of either form. NULL when the argument is not a tensor. */
static inline DLTensor* RewireTensorOf(const RewireFFIAny* arg) {
  if (arg->type_index == kRewireFFITensor) return &((RewireFFITensorObject*)arg->v_obj)->tensor;
  if (arg->type_index == kRewireFFIDLTensorPtr) return (DLTensor*)arg->v_ptr;
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_KERNEL_H_ */

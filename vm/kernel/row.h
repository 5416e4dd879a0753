/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/row.h>. */
/* A kernel's row: what a kernel library declares about one of its kernels. Plain C.
 *
 * The linker compares a program's declaration of a kernel with the row. The interpreter uses the row to keep
 * written arguments apart. The compiler reads the traits of a kernel from it.
 *
 * A row lists the arguments in order: first those that the kernel reads, then those that it writes. A call
 * may leave out optional arguments, the last ones first. At most one read argument and one written argument
 * may be a list of any number of tensors. */
#ifndef REWIRE_VM_KERNEL_ROW_H_
#define REWIRE_VM_KERNEL_ROW_H_

#include "rewire/vm/kernel/ffi_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declares how much workspace (RewireKernelApi::workspace) one call takes at most. It is for hosts that must
 * know the memory before a run (docs/embedding.md, "Bounded memory").
 *
 * The function writes the size in bytes of each block that the kernel asks for to blocks[0 .. result). It
 * returns the number of blocks, at most REWIRE_MAX_WORKSPACES, or -1 if the tensors do not determine the
 * sizes. The tensors have shapes and dtypes but no data. They may be larger than those of the real call, so
 * the sizes must not shrink when a dimension grows.
 *
 * `handle` is what the kernel itself gets; for a kernel with attributes, the object that its factory made. A
 * NULL tensor stands for an argument that is None. Number, ranks and dtypes are not checked; they are
 * whatever a file says. */
#define REWIRE_MAX_WORKSPACES 8
typedef int32_t (*RewireWorkspaceBound)(void* handle, const DLTensor* const* tensors, int32_t count,
                                        uint64_t* blocks);

/* Sets of dtypes. */
#define REWIRE_DTYPE_F32 0x1u
#define REWIRE_DTYPE_F64 0x2u
#define REWIRE_DTYPE_F16 0x4u
#define REWIRE_DTYPE_BF16 0x8u
#define REWIRE_DTYPE_I8 0x10u
#define REWIRE_DTYPE_I16 0x20u
#define REWIRE_DTYPE_I32 0x40u
#define REWIRE_DTYPE_I64 0x80u
#define REWIRE_DTYPE_U8 0x100u
#define REWIRE_DTYPE_U16 0x200u
#define REWIRE_DTYPE_U32 0x400u
#define REWIRE_DTYPE_U64 0x800u
#define REWIRE_DTYPE_BOOL 0x1000u
/* All other dtypes whose elements have 1, 2, 4, 8 or 16 bytes (OTHER_16) or at most 8 bytes (OTHER_8). Such
 * elements are moved, but their values are not used. */
#define REWIRE_DTYPE_OTHER_16 0x2000u
#define REWIRE_DTYPE_OTHER_8 0x4000u
/* Integers of 4 and 2 bits and floats of 8 and 4 bits, one element in each byte, with their values. */
#define REWIRE_DTYPE_NARROW 0x8000u

/* RewireKernelArgument::flags */
#define REWIRE_ARGUMENT_WRITTEN 0x1u
#define REWIRE_ARGUMENT_OPTIONAL 0x2u /* may be None or left out */
#define REWIRE_ARGUMENT_LIST 0x4u     /* any number of tensors; this argument describes each of them */
/* A list with as many tensors as the attribute of the argument's name has elements. */
#define REWIRE_ARGUMENT_COUNTED 0x8u
#define REWIRE_ARGUMENT_ON_HOST 0x80u     /* in memory of the host, though the kernel is a device's */
#define REWIRE_ARGUMENT_ONE_ELEMENT 0x10u /* a tensor with one element */
/* How a written argument may share memory with the arguments in `over`. AROUND: they lie within it. WITHIN:
 * it lies within them. The kernel itself refuses positions that it cannot handle. Without either flag, both
 * must be exactly the same memory. */
#define REWIRE_ARGUMENT_AROUND 0x20u
#define REWIRE_ARGUMENT_WITHIN 0x40u

/* As many arguments as `over` has bits. */
#define REWIRE_MAX_ROW_ARGUMENTS 16

typedef struct RewireKernelArgument {
  const char* name; /* not NUL-terminated */
  uint32_t dtypes;  /* set of REWIRE_DTYPE_*; 0: not declared */
  /* For a written argument: if bit i is set, it may share the memory of argument i of the row. It must not
   * overlap any other argument. */
  uint16_t over;
  uint8_t name_bytes;
  uint8_t flags;       /* set of REWIRE_ARGUMENT_* */
  uint8_t dtype_group; /* arguments with the same non-zero number have the same dtype in a call */
} RewireKernelArgument;

/* RewireKernelRow::traits */
#define REWIRE_KERNEL_IMPURE 0x1u  /* equal arguments may give different results: random numbers */
#define REWIRE_KERNEL_OBJECTS 0x2u /* takes whole ADTs; the import has the flag `objects` */
#define REWIRE_KERNEL_RETURNS 0x4u /* returns a value */
/* Each element of the output depends only on the elements of the (broadcast) inputs at the same position. */
#define REWIRE_KERNEL_ELEMENTWISE 0x8u
/* Each element of the output is an element of the first input, selected only by position and order. So an
 * increasing function of the elements may be applied before or after the kernel. */
#define REWIRE_KERNEL_SELECTS 0x10u
#define REWIRE_KERNEL_LAYOUT 0x20u /* has the attribute `layout`, NCHW or NHWC */
/* A shape function: it reads and writes shapes and computes with a few integers. */
#define REWIRE_KERNEL_SHAPE 0x40u
/* A shape function's result does not shrink when any integer of any input grows (GROWS), or one of the
 * first input (GROWS_WITH_FIRST). */
#define REWIRE_KERNEL_GROWS 0x80u
#define REWIRE_KERNEL_GROWS_WITH_FIRST 0x100u
/* A shape function's result has no dimension that exceeds the same dimension of the first input. */
#define REWIRE_KERNEL_SHRINKS 0x200u
/* Its workspace is on the device of its last argument: tensors that it makes (RewireKernelApi::new_tensor)
 * and lets go when the call ends. */
#define REWIRE_KERNEL_DEVICE_WORKSPACE 0x400u

typedef struct RewireKernelRow {
  const RewireKernelArgument* arguments; /* NULL: the arguments are not declared */
  uint32_t argument_count;
  uint32_t traits;                /* set of REWIRE_KERNEL_* */
  const char* attributes;         /* "axis = -1, keepdims = 1", as in docs/kernels.md; NULL: not declared */
  RewireWorkspaceBound workspace; /* NULL: not declared. Returns 0: no workspace. */
} RewireKernelRow;

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_ROW_H_ */

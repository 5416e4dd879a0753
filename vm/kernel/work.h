/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/work.h>. */
/* A kernel's work: how much a call does, as its library declares it. Plain C.
 *
 * The compiler weighs with it what to run at once, what to compute when a program is loaded, and what is
 * worth a device. `vm-run --report` compares the time of a call with what the processor can do. What a
 * library does not declare is not known: such a call is neither moved nor judged.
 *
 * The rules are texts, so that they can also stand in a file beside the library. A rule is an expression of
 * integers, names, + - * / and parentheses; x / 0 is 0:
 *   x           the elements of the tensor argument x of the row (row.h); 0 if the call leaves it out
 *   x[0]        one of its dimensions; x[-1] is the last one
 *   group       an attribute: an integer, or the product of a list of integers
 *   pads[0]     one number of a list
 * An attribute that an import leaves out has the default of the row's `attributes`, if that is an integer. If
 * a name has no value in a call, the work of that call is not known. */
#ifndef REWIRE_VM_KERNEL_WORK_H_
#define REWIRE_VM_KERNEL_WORK_H_

#include "rewire/vm/kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireKernelWork {
  /* Multiplications, each with an addition, that the kernel does. NULL: it is no product. Then its work is
   * counted in operations. */
  const char* products;
  /* The plain form of the same product does so many. NULL: as many. "0": a processor cannot do them at
   * full speed, because steps wait for each other. */
  const char* plain_products;
  /* Simple operations for each element of the largest tensor that is read, or for all that are written if
   * these are more. Each takes about as long as an addition. 0: 1 for an elementwise kernel, else not known.
   */
  double operations;
  /* How many times these are done for each element, such as the elements of a window. NULL: once. */
  const char* times;
} RewireKernelWork;

/* A table (kernel.h) with one more column. Set table.struct_size to sizeof(RewireKernelWorkTable), and export
 * it as `__rewire_kernel_table`, or add its `table` to a set of kernels. Loaders that do not know the column
 * do not read it, and a table without it declares no work. */
typedef struct RewireKernelWorkTable {
  RewireKernelTable table;
  const RewireKernelWork* work; /* work[i] describes entries[i], with the names of rows[i]; NULL: nothing */
} RewireKernelWorkTable;

/* The column of a table; NULL if it has none. A copy of `*table` that is no RewireKernelWorkTable loses it,
 * and must have a smaller struct_size. */
static inline const RewireKernelWork* RewireWorkOf(const RewireKernelTable* table) {
  if (table->struct_size < sizeof(RewireKernelWorkTable)) return NULL;
  return ((const RewireKernelWorkTable*)table)->work;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_WORK_H_ */

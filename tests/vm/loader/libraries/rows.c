/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on floats with rows of the library's own. With OLD the table has the size that tables had before
 * there were rows: what stands behind it is not read. With SHORT it is shorter than any table. */
#include <stddef.h>

#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

static const float* In(const RewireFFIAny* arg) { return (const float*)RewireTensorOf(arg)->data; }
static float* Out(const RewireFFIAny* arg) { return (float*)RewireTensorOf(arg)->data; }
static int64_t Size(const RewireFFIAny* arg) { return RewireTensorOf(arg)->shape[0]; }

static int Both(void* handle, const RewireFFIAny* args, int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)num_args, (void)result;
  for (int64_t i = 0; i < Size(&args[0]); ++i) {
    Out(&args[2])[i] = In(&args[0])[i] + In(&args[1])[i];
    Out(&args[3])[i] = In(&args[0])[i] - In(&args[1])[i];
  }
  return 0;
}

static int Add(void* handle, const RewireFFIAny* args, int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)num_args, (void)result;
  for (int64_t i = 0; i < Size(&args[0]); ++i) Out(&args[2])[i] = In(&args[0])[i] + In(&args[1])[i];
  return 0;
}

#define READ(name) \
  { #name, REWIRE_DTYPE_F32, 0, sizeof(#name) - 1, 0, 1 }
#define WRITTEN(name, over) \
  { #name, REWIRE_DTYPE_F32, over, sizeof(#name) - 1, REWIRE_ARGUMENT_WRITTEN, 1 }

static const RewireKernelArgument kBoth[] = {READ(a), READ(b), WRITTEN(sum, 0), WRITTEN(difference, 0)};
static const RewireKernelArgument kAdd[] = {READ(a), READ(b), WRITTEN(out, 1)};

/* Not in the order of their names. The last one is not described. */
static const RewireKernelEntry kEntries[] = {
    {"rows.both", Both, 0}, {"rows.add", Add, 0}, {"rows.bare", Add, 0}};
static const RewireKernelRow kRows[] = {
    {kBoth, 4, 0, NULL, NULL}, {kAdd, 3, 0, NULL, NULL}, {NULL, 0, 0, NULL, NULL}};

REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table = {
#ifdef OLD
    offsetof(RewireKernelTable, rows),
#elif defined(SHORT)
    offsetof(RewireKernelTable, entries),
#else
    sizeof(RewireKernelTable),
#endif
    3, kEntries, kRows};
